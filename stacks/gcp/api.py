"""Google's HTTP APIs, called with this machine's login; responses are typed values.

Plain requests: what is needed is spread over five services, of which the client library of Compute
Engine has one and takes 2.4 s to import.
"""

from __future__ import annotations

import base64
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, TypeAlias, TypeVar
from urllib.parse import quote

import msgspec

from ...schemas.structure.decoding import decode_json
from ..provider import ProviderError, provider_error
from ..pulumi.engine.events import translate

Body: TypeAlias = "Mapping[str, Body] | Sequence[Body] | str | int | bool | None"
SERVICES = {
    "compute": "https://compute.googleapis.com/compute/v1",
    "filestore": "https://file.googleapis.com/v1",
    "iam": "https://iam.googleapis.com/v1",
    "lustre": "https://lustre.googleapis.com/v1",
    "resources": "https://cloudresourcemanager.googleapis.com/v1",
    "secrets": "https://secretmanager.googleapis.com/v1",
    "storage": "https://storage.googleapis.com/storage/v1",
    "usage": "https://serviceusage.googleapis.com/v1",
}
_ENDPOINTS = {
    "compute": "COMPUTE",
    "filestore": "FILESTORE",
    "iam": "IAM",
    "lustre": "LUSTRE",
    "resources": "RESOURCE_MANAGER",
    "secrets": "SECRET_MANAGER",
    "storage": "STORAGE",
    "usage": "SERVICE_USAGE",
}
"""What the provider of the engine calls a service in GOOGLE_..._CUSTOM_ENDPOINT (hashicorp/
terraform-provider-google, provider.go, November 2026), which pulumi-gcp reads too."""
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_TIMEOUT_S = 130
"""Seconds for one call: `operations.wait` answers after 2 minutes at the latest."""
_TRIES = 4
_AGAIN = frozenset({429, 500, 502, 503, 504})
"""Statuses that Google says to retry."""
NOT_FOUND = 404


def addresses() -> dict[str, str]:
    """Return each service's endpoint: GOOGLE_..._CUSTOM_ENDPOINT first, as the engine does.

    Networks that reach Google through Private Service Connect alone name their endpoints there.
    """
    return {
        service: os.environ.get(f"GOOGLE_{name}_CUSTOM_ENDPOINT", SERVICES[service]).rstrip("/")
        for service, name in _ENDPOINTS.items()
    }


class Answer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of what Google answers; what a subclass doesn't name is left out."""


T = TypeVar("T", bound=Answer)


class _Detail(Answer, frozen=True):
    code: str = ""
    message: str = ""


class _Problems(Answer, frozen=True):
    errors: tuple[_Detail, ...] = ()


class Operation(Answer, frozen=True):
    """A long-running operation of Google."""

    name: str
    status: str = ""
    zone: str = ""
    error: _Problems | None = None


class _Refusal(Answer, frozen=True):
    message: str = ""
    status: str = ""


class _Refused(Answer, frozen=True):
    error: _Refusal = _Refusal()


class _Page(Answer, frozen=True):
    next_page_token: str = ""


class GoogleError(ProviderError):
    """Google refused; `status` is that of HTTP, 0 where no request was sent."""

    def __init__(self, message: str, *, status: int = 0, resource: str = "") -> None:
        """Translate Google's message."""
        super().__init__(translate(message, resource=resource))
        self.status = status


class Reply(Protocol):
    """What a session returns."""

    status_code: int
    content: bytes


class Login(Protocol):
    """A session of requests that is logged in."""

    def request(
        self,
        method: str,
        url: str,
        *,
        params: Mapping[str, str] | None = None,
        json: Body = None,
        timeout: float | None = None,
    ) -> Reply:
        """Send one request."""
        ...


class Api:
    """One project; may be shared by threads."""

    def __init__(
        self,
        project: str,
        *,
        login: Login | None = None,
        services: Mapping[str, str] | None = None,
        pause_s: float = 1.0,
    ) -> None:
        """Set the parameters; the login is used with the first request.

        Args:
            project: its id.
            login: a session; default: the application-default login of this machine.
            services: endpoints, by the keys of `SERVICES`; default: those of `addresses`.
            pause_s: first wait before a retry; it doubles.
        """
        self.project = project
        self._login = login
        self._services = addresses() if services is None else services
        self._pause_s = pause_s

    def call(
        self,
        answer: type[T],
        path: str,
        *,
        service: str = "compute",
        method: str = "GET",
        query: Mapping[str, str] | None = None,
        body: Body = None,
    ) -> T:
        """Return Google's response to one request; `path` starts below the service.

        Raises:
            GoogleError: it refused, or there is no login.
        """
        return decode_json(self._send(service, method, path, query, body), answer)

    def find(
        self,
        answer: type[T],
        path: str,
        *,
        service: str = "compute",
        query: Mapping[str, str] | None = None,
    ) -> T | None:
        """Return the response, or None where no such resource exists. Raises as `ask`."""
        try:
            return self.call(answer, path, service=service, query=query)
        except GoogleError as error:
            if error.status == NOT_FOUND:
                return None
            raise

    def pages(
        self,
        answer: type[T],
        path: str,
        *,
        service: str = "compute",
        query: Mapping[str, str] | None = None,
    ) -> Iterator[T]:
        """Yield the pages of a list; raises GoogleError."""
        token = ""
        while True:
            requested = {**(query or {}), **({"pageToken": token} if token else {})}
            content = self._send(service, "GET", path, requested, None)
            yield decode_json(content, answer)
            token = decode_json(content, _Page).next_page_token
            if not token:
                return

    def wait(self, operation: Operation, *, resource: str = "", patience_s: float = 3600) -> None:
        """Wait for the end of an operation in a zone.

        Raises:
            GoogleError: it failed, or didn't end in time; with Google's message.
        """
        zone, ends = operation.zone.rpartition("/")[2], time.monotonic() + patience_s
        while operation.status != "DONE":
            if time.monotonic() > ends:
                message = f"operation {operation.name} is not at its end after {patience_s:.0f} s"
                raise GoogleError(message, resource=resource)
            path = f"{self.in_zone(zone)}/operations/{operation.name}/wait"
            operation = self.call(Operation, path, method="POST")
        if operation.error is not None:
            message_text = "\n".join(f"{e.code}: {e.message}" for e in operation.error.errors)
            raise GoogleError(message_text, resource=resource)

    def in_project(self) -> str:
        """Return the path of what belongs to no region."""
        return f"projects/{quote(self.project)}"

    def in_zone(self, zone: str) -> str:
        """Return the path of a zone."""
        return f"{self.in_project()}/zones/{quote(zone)}"

    def in_region(self, region: str) -> str:
        """Return the path of a region."""
        return f"{self.in_project()}/regions/{quote(region)}"

    def _send(
        self, service: str, method: str, path: str, query: Mapping[str, str] | None, body: Body
    ) -> bytes:
        url = f"{self._services[service]}/{path}"
        pause = self._pause_s
        for left in reversed(range(_TRIES)):
            try:
                reply = self._session().request(
                    method, url, params=query, json=body, timeout=_TIMEOUT_S
                )
            except OSError as error:  # what requests raises: no route, no name, cut off
                message = f"{service} of Google can't be reached: {error}"
                raise GoogleError(message) from error
            if reply.status_code not in _AGAIN or not left:
                break
            time.sleep(pause)
            pause *= 2
        if reply.status_code >= 400:  # noqa: PLR2004  # statuses of errors
            raise GoogleError(_words(reply), status=reply.status_code)
        return reply.content or b"{}"

    def _session(self) -> Login:
        if self._login is None:
            self._login = _GoogleLogin()
        return self._login


def _words(reply: Reply) -> str:
    try:
        error = decode_json(reply.content, _Refused).error
    except msgspec.DecodeError:
        return f"HTTP {reply.status_code}: {reply.content[:500].decode(errors='replace')}"
    return f"{error.status or reply.status_code}: {error.message}"


class _GoogleLogin:
    """The application-default login; that it is missing or over is Google's refusal like others."""

    def __init__(self) -> None:
        import google.auth  # noqa: PLC0415  # 0.25 s, and only where Google is used
        from google.auth.exceptions import GoogleAuthError  # noqa: PLC0415  # as above
        from google.auth.transport.requests import AuthorizedSession  # noqa: PLC0415  # as above

        self._refused: type[Exception] = GoogleAuthError
        try:
            credentials, _ = google.auth.default(scopes=[_SCOPE])
        except GoogleAuthError as error:
            raise _no_login(error) from error
        # google-auth types a part of itself only
        self._session: Login = AuthorizedSession(credentials)  # type: ignore[no-untyped-call]

    def request(
        self,
        method: str,
        url: str,
        *,
        params: Mapping[str, str] | None = None,
        json: Body = None,
        timeout: float | None = None,  # as requests calls it
    ) -> Reply:
        try:
            return self._session.request(method, url, params=params, json=json, timeout=timeout)
        except self._refused as error:
            raise _no_login(error) from error


def _no_login(error: Exception) -> GoogleError:
    return GoogleError(f"could not find default credentials: {error}")


_NAME = re.compile(r"projects/([^/]+)/secrets/[^/]+(/versions/[^/]+)?")


class _Payload(Answer, frozen=True):
    data: str


class _Version(Answer, frozen=True):
    payload: _Payload


def read_secret(place: str, login: Login | None = None) -> str:
    """Return the text of a secret, "projects/P/secrets/S"; the newest version where none is given.

    Raises:
        ProviderError: it can't be read, or is no text (GC917).
    """
    named = _NAME.fullmatch(place)
    if named is None:
        raise provider_error("GC917", "it is no projects/PROJECT/secrets/NAME of Secret Manager")
    path = f"{place}{'' if named[2] else '/versions/latest'}:access"
    version = Api(named[1], login=login).call(_Version, path, service="secrets")
    try:
        return base64.b64decode(version.payload.data).decode()
    except UnicodeDecodeError:
        raise provider_error("GC917", "it is binary, and text is needed") from None
