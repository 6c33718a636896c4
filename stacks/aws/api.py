"""Calls to AWS with typed responses, and its refusals as diagnostics: the only user of botocore."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from functools import cache
from typing import Any, TypeVar

import msgspec

from ...schemas.diagnostics import Diagnostic
from ...schemas.structure.decoding import convert
from ..provider import ProviderError, provider_error
from ..pulumi.engine.command import require
from ..pulumi.engine.events import translate

T = TypeVar("T")
_LOGIN = ("NoCredentialsError", "PartialCredentialsError", "ProfileNotFound", "TokenRetrievalError",
          "SSOTokenLoadError", "UnauthorizedSSOTokenError", "CredentialRetrievalError",
          "LoginRefreshRequired", "LoginTokenLoadError")  # fmt: skip
"""Error codes of botocore for missing credentials."""


class AwsError(ProviderError):
    """AWS refused or is unreachable; `code` is its error code (InsufficientInstanceCapacity)."""

    def __init__(self, code: str, finding: Diagnostic) -> None:
        """Hold both."""
        super().__init__(finding)
        self.code = code


class Answer(msgspec.Struct, frozen=True, rename="pascal"):
    """Base of answers: fields as AWS spells them, in CamelCase; others are left out."""


class Api:
    """AWS in one region. Clients are made once and shared by threads, which botocore allows."""

    def __init__(self, region: str, *, endpoint_url: str | None = None) -> None:
        """Set the parameters; nothing is requested yet.

        Args:
            region: of the site.
            endpoint_url: where AWS is, for tests; default: AWS, or AWS_ENDPOINT_URL.

        Raises:
            ProviderError: GC967, botocore is not installed.
        """
        require("aws")
        self.region = region
        self._endpoint_url = endpoint_url
        self._clients: dict[str, Any] = {}
        self._lock = threading.Lock()

    def elsewhere(self, region: str) -> Api:
        """Return the same AWS in another region."""
        return self if region == self.region else Api(region, endpoint_url=self._endpoint_url)

    def client(self, service: str) -> Any:
        """Return botocore's client of a service."""
        from botocore.config import Config  # type: ignore[import-untyped]  # noqa: PLC0415  # 0.3 s; no types

        with self._lock:
            if service not in self._clients:
                config = Config(retries={"mode": "standard", "max_attempts": 5})
                region = _HOMES.get(service, self.region)
                client = _session().create_client(
                    service, region_name=region, endpoint_url=self._endpoint_url, config=config
                )
                client.meta.events.register("before-parse", _refuse_page)
                self._clients[service] = client
            return self._clients[service]

    def call(self, answer: type[T], service: str, operation: str, **parameters: Any) -> T:
        """Call an operation ("describe_subnets") and return its response.

        Raises:
            AwsError: AWS refused, or could not be reached.
        """
        with _Translated():
            return _typed(getattr(self.client(service), operation)(**parameters), answer)

    def find(
        self, answer: type[T], service: str, operation: str, *, missing: str, **parameters: Any
    ) -> T | None:
        """Return the response, or None where no such resource exists; raises as `ask`.

        `missing` is AWS' error code for that, or its prefix.
        """
        try:
            return self.call(answer, service, operation, **parameters)
        except AwsError as error:
            if error.code.startswith(missing):
                return None
            raise

    def pages(
        self, answer: type[T], service: str, operation: str, **parameters: Any
    ) -> Iterator[T]:
        """Yield the pages of a list; raises as `ask`."""
        with _Translated():
            pages = self.client(service).get_paginator(operation).paginate(**parameters)
            for page in pages:
                yield _typed(page, answer)


def _session() -> Any:
    """Return a session with credentials of its own, and service models read once a process."""
    from botocore.session import get_session  # type: ignore[import-untyped]  # noqa: PLC0415  # as Config

    session = get_session()
    session.register_component("data_loader", _loader())
    return session


@cache
def _loader() -> Any:
    """Return the reader of botocore's models: EC2's alone takes half a second."""
    from botocore.loaders import create_loader  # type: ignore[import-untyped]  # noqa: PLC0415  # as Config

    return create_loader()


_HOMES = {"pricing": "us-east-1", "iam": "us-east-1", "route53": "us-east-1"}
"""Region of services that are in few regions or in one (AWS General Reference, endpoints)."""


def filters(**wanted: str | list[str]) -> list[dict[str, str | list[str]]]:
    """Return EC2's filters; an underscore means a hyphen: zone_id=..., and see `tagged`."""
    return [
        {"Name": name.replace("_", "-"), "Values": [value] if isinstance(value, str) else value}
        for name, value in wanted.items()
    ]


def tagged(tags: dict[str, str]) -> list[dict[str, str | list[str]]]:
    """Return EC2's filters for what has these tags."""
    return [{"Name": f"tag:{key}", "Values": [value]} for key, value in tags.items()]


def _refuse_page(response_dict: dict[str, Any], **_: object) -> None:
    """Refuse an HTML response, with its status: it is not from AWS but from a proxy or gateway.

    Server errors (500 and above) are retried by botocore.
    """
    status, body = response_dict["status_code"], response_dict["body"]
    if status < _OUT_OF_ORDER and isinstance(body, bytes) and _PAGE.match(body):
        page = body.decode(errors="replace")
        raise AwsError("ResponseParserError", translate(f"HTTP {status}: {page}"))


_OUT_OF_ORDER = 500
_PAGE = re.compile(rb"\s*<(!doctype\s+html|html)\b", re.IGNORECASE)


class _Translated:
    """Turns what botocore raises into an AwsError."""

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: object
    ) -> None:
        from botocore.exceptions import (  # type: ignore[import-untyped]  # noqa: PLC0415  # as Config
            BotoCoreError,
            ClientError,
        )
        from botocore.parsers import (  # type: ignore[import-untyped]  # noqa: PLC0415  # as Config
            ResponseParserError,
        )

        if isinstance(error, ClientError):
            code = str(error.response.get("Error", {}).get("Code", ""))
            raise AwsError(code, translate(str(error))) from error
        if isinstance(error, BotoCoreError):
            name = type(error).__name__
            message = f"NoCredentialProviders: {error}" if name in _LOGIN else str(error)
            raise AwsError(name, translate(message)) from error
        if isinstance(error, ResponseParserError):  # what answers is no AWS: a proxy's page
            raise AwsError("ResponseParserError", translate(str(error))) from error


def _typed(raw: object, answer: type[T]) -> T:
    return convert(raw, answer, strict=False)


_ARN_PARTS = 7


class _Value(Answer, frozen=True):
    secret_string: str | None = None


def read_secret(place: str) -> str:
    """Return the text of the secret with this ARN, in its newest version.

    Raises:
        ProviderError: it can't be read, or is no text (GC917).
    """
    parts = place.split(":", maxsplit=_ARN_PARTS - 1)
    if len(parts) < _ARN_PARTS or parts[2] != "secretsmanager":
        raise provider_error("GC917", "it is no ARN of a secret of AWS Secrets Manager")
    answer = Api(parts[3]).call(_Value, "secretsmanager", "get_secret_value", SecretId=place)
    if answer.secret_string is None:
        raise provider_error("GC917", "it is binary, and text is needed")
    return answer.secret_string
