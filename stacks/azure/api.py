"""One subscription, queried through Azure's SDK; refusals are returned as our diagnostics."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Annotated, Any, TypeVar
from urllib.parse import urlencode

import msgspec
from azure.core import PipelineClient
from azure.core.credentials import TokenCredential
from azure.core.exceptions import (
    ClientAuthenticationError,
    DecodeError,
    DeserializationError,
    HttpResponseError,
    ServiceRequestError,
    ServiceResponseError,
)
from azure.core.pipeline.policies import BearerTokenCredentialPolicy, RetryPolicy
from azure.core.pipeline.transport import HttpTransport
from azure.core.rest import HttpRequest, HttpResponse
from azure.identity import DefaultAzureCredential
from azure.mgmt.compute import ComputeManagementClient

from ...schemas.structure.decoding import decode_json
from ..provider import ProviderError, provider_error
from ..pulumi.engine.events import NO_CAPACITY, translate

logging.getLogger("azure").addHandler(logging.NullHandler())
"""What the SDK would log to standard error is in our diagnostics."""

T = TypeVar("T")
_LOGGED_OUT, _MISSING = 401, 404
_RESOURCES = "2021-04-01"
"""API version of Microsoft.Resources."""
_METADATA = "2022-09-01"
"""API version of a cloud's own description (hashicorp/go-azure-sdk, sdk/internal/metadata)."""


class Answer(msgspec.Struct, frozen=True, rename="camel"):
    """Base of what we read of an answer; all else in it is left alone."""


class Sku(Answer, frozen=True):
    """Of a scale set: which size its machines have, and how many there are."""

    name: str = ""
    capacity: int | None = None


class Tagged(Answer, frozen=True):
    """A resource, from the list by tags."""

    id: str
    name: str
    type: str
    tags: dict[str, str] = {}
    sku: Sku = Sku()


class _Authentication(Answer, frozen=True):
    audiences: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    login_endpoint: str = ""
    """"": where Azure's own libraries log in by themselves."""


class Cloud(Answer, frozen=True):
    """An Azure, as it describes itself."""

    resource_manager: str
    authentication: _Authentication


_PUBLIC = Cloud(
    resource_manager="https://management.azure.com",
    authentication=_Authentication(audiences=("https://management.azure.com",)),
)
_PUBLIC_NAMES = {"", "public", "azurecloud", "azurepubliccloud"}
"""How ARM_ENVIRONMENT may call it, in small letters (pulumi-azure-native, November 2026)."""


class _Page(Answer, frozen=True):
    value: list[msgspec.Raw]
    next_link: str | None = None


class Api:
    """A subscription. `credential` and `transport` are for tests."""

    def __init__(
        self,
        subscription: str,
        *,
        credential: TokenCredential | None = None,
        transport: HttpTransport[object, object] | None = None,
        interval_s: float = 5.0,
    ) -> None:
        """Set the parameters; nothing is requested before the first call."""
        self.subscription = subscription
        self.interval_s = interval_s
        """Seconds between two questions whether something long is done."""
        self._credential = credential
        self._transport = transport

    @cached_property
    def cloud(self) -> Cloud:
        """The Azure to use: the one at ARM_METADATA_HOSTNAME, as in the engine's provider.

        Clouds that are cut off from the public one are found there.

        Raises:
            ProviderError: GC966, it is no Azure, or ARM_ENVIRONMENT names another than the public
                one: the zones of private names and the prices are the public one's.
        """
        host = os.environ.get("ARM_METADATA_HOSTNAME")
        named = os.environ.get("ARM_ENVIRONMENT", "")
        if not host and named.casefold() not in _PUBLIC_NAMES:
            raise provider_error(
                "GC966",
                f"ARM_ENVIRONMENT is {named}: gcluster makes clusters on the public Azure",
                hint="unset it, or write `public`; a cloud of your own that describes itself is "
                "named by ARM_METADATA_HOSTNAME",
            )
        if not host:
            return _PUBLIC
        client: PipelineClient[HttpRequest, HttpResponse] = PipelineClient(
            f"https://{host}", policies=[RetryPolicy()], transport=self._transport
        )
        url = f"https://{host}/metadata/endpoints?api-version={_METADATA}"
        with refusals(), client:
            response = client.send_request(HttpRequest("GET", url))
            response.raise_for_status()
            try:
                return decode_json(response.content, Cloud)
            except msgspec.MsgspecError as error:
                raise provider_error(
                    "GC966",
                    f"ARM_METADATA_HOSTNAME: {host} does not describe an Azure: {error}",
                    hint=f"{url} must return resourceManager and authentication; without the "
                    "variable the public Azure is used",
                ) from error

    @cached_property
    def compute(self) -> ComputeManagementClient:
        """The SDK's client; its calls belong into `refusals`."""
        login = self.cloud.authentication
        more: dict[str, Any] = {} if self._transport is None else {"transport": self._transport}
        where = {"authority": login.login_endpoint} if login.login_endpoint else {}
        return ComputeManagementClient(
            self._credential or DefaultAzureCredential(**where),
            self.subscription,
            base_url=self.cloud.resource_manager,
            credential_scopes=[f"{login.audiences[0]}/.default"],
            polling_interval=self.interval_s,
            **more,
        )

    def get(self, kind: type[T], path: str, version: str, **query: str) -> T:
        """Return one answer of Azure Resource Manager; raises ProviderError."""
        return self._send(kind, self._url(path, version, query))

    def find(self, kind: type[T], path: str, version: str) -> T | None:
        """Return one response, None where nothing exists there; raises ProviderError."""
        with refusals():
            response = self._sent(self._url(path, version, {}))
            if response.status_code == _MISSING:
                return None
            response.raise_for_status()
            return decode_json(response.content, kind)

    def pages(self, kind: type[T], path: str, version: str, **query: str) -> Iterator[T]:
        """Yield the items of all pages; raises ProviderError."""
        url: str | None = self._url(path, version, query)
        while url:
            page = self._send(_Page, url)
            yield from (decode_json(item, kind) for item in page.value)
            url = page.next_link

    def tagged(self, key: str, value: str) -> Iterator[Tagged]:
        """Yield the resources and resource groups that carry a tag."""
        wanted = f"tagName eq '{key}' and tagValue eq '{value}'"
        below = f"/subscriptions/{self.subscription}"
        for what in ("resources", "resourcegroups"):
            yield from self.pages(Tagged, f"{below}/{what}", _RESOURCES, **{"$filter": wanted})

    def _url(self, path: str, version: str, query: dict[str, str]) -> str:
        manager = self.cloud.resource_manager.rstrip("/")
        return f"{manager}{path}?{urlencode({**query, 'api-version': version})}"

    def _send(self, kind: type[T], url: str) -> T:
        with refusals():
            response = self._sent(url)
            response.raise_for_status()
            return decode_json(response.content, kind)

    def _sent(self, url: str) -> HttpResponse:
        answer: HttpResponse = self.compute.send_request(HttpRequest("GET", url))
        return answer


@contextmanager
def refusals(resource: str = "") -> Iterator[None]:
    """Turn the SDK's exceptions into ProviderError, with Azure's message in the detail."""
    try:
        yield
    except ClientAuthenticationError as error:
        raise _logged_out(error) from error
    except (ServiceRequestError, ServiceResponseError) as error:
        raise provider_error(
            "GC966",
            f"Azure can't be reached: {error.message}",
            hint="check the network and the proxy of this machine, then run the same command again",
        ) from error
    except (DecodeError, DeserializationError, msgspec.MsgspecError) as error:
        raise provider_error(
            "GC966",
            f"what Azure answered can't be read: {error.__cause__ or error}",
            hint="does a proxy answer in its place? Then run the same command again",
        ) from error
    except HttpResponseError as error:
        if error.status_code == _LOGGED_OUT:
            raise _logged_out(error) from error
        found = translate(str(error), resource=resource)
        lacks = bool(resource) and found.code == NO_CAPACITY
        raise ProviderError(found, lacking={resource: found} if lacks else None) from error


def _logged_out(error: Exception) -> ProviderError:
    return provider_error(
        "GC963",
        "the login to Azure has expired or is missing",
        detail=str(error),
        hint="log in with `az login`, then run the same command again",
    )


_PLACE = re.compile(r"(https://[a-z0-9-]+\.(vault\.[a-z.]+))(/secrets/[^/]+(/[^/]+)?)")
_VERSION = "7.4"
"""API version of Key Vault."""


class _Value(Answer, frozen=True):
    value: str


def read_secret(
    place: str,
    credential: TokenCredential | None = None,
    transport: HttpTransport[object, object] | None = None,
) -> str:
    """Return a secret, "https://VAULT.vault.azure.net/secrets/NAME"; its newest version if none.

    Raises:
        ProviderError: it can't be read.
    """
    named = _PLACE.fullmatch(place)
    if named is None:
        raise provider_error("GC917", "it is no https://VAULT.vault.azure.net/secrets/NAME")
    vault, domain, path = named[1], named[2], named[3]
    login = BearerTokenCredentialPolicy(
        credential or DefaultAzureCredential(), f"https://{domain}/.default"
    )
    client: PipelineClient[HttpRequest, HttpResponse] = PipelineClient(
        vault, policies=[RetryPolicy(), login], transport=transport
    )
    with refusals(), client:
        response = client.send_request(HttpRequest("GET", f"{vault}{path}?api-version={_VERSION}"))
        response.raise_for_status()
        return decode_json(response.content, _Value).value
