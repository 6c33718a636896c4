"""OCI's APIs, called by its SDK with this machine's login; responses are typed values."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import msgspec

from ...schemas.diagnostics import Diagnostic
from ...schemas.structure.decoding import convert
from ..provider import ProviderError
from ..pulumi.engine.command import require
from ..pulumi.engine.events import translate

T = TypeVar("T")
NOT_FOUND = "NotAuthorizedOrNotFound"
"""OCI doesn't distinguish missing from unauthorized."""
_CLIENTS = {
    "block": ("core", "BlockstorageClient"),
    "budget": ("budget", "BudgetClient"),
    "compute": ("core", "ComputeClient"),
    "files": ("file_storage", "FileStorageClient"),
    "identity": ("identity", "IdentityClient"),
    "limits": ("limits", "LimitsClient"),
    "lustre": ("lustre_file_storage", "LustreFileStorageClient"),
    "management": ("core", "ComputeManagementClient"),
    "network": ("core", "VirtualNetworkClient"),
    "objects": ("object_storage", "ObjectStorageClient"),
    "search": ("resource_search", "ResourceSearchClient"),
}
"""Our name of a service -> module and class of the SDK."""


class OciError(ProviderError):
    """OCI refused or could not be reached; `code` is its error code (LimitExceeded)."""

    def __init__(self, code: str, finding: Diagnostic) -> None:
        """Hold both."""
        super().__init__(finding)
        self.code = code


class Answer(msgspec.Struct, frozen=True, rename="camel"):
    """Base of answers: fields as OCI spells them, in camelCase; others are left out."""


class Api:
    """OCI in one region. Clients are made once and shared by threads."""

    def __init__(
        self,
        region: str,
        *,
        login: Mapping[str, str] | None = None,
        endpoint_url: str | None = None,
    ) -> None:
        """Set the parameters; nothing is requested yet.

        Args:
            region: of the site.
            login: a profile's keys; default: the profile OCI_CLI_PROFILE of ~/.oci/config, or the
                instance's own identity where OCI_CLI_AUTH is instance_principal.
            endpoint_url: where OCI is, for tests; the service's name is appended.

        Raises:
            ProviderError: GC967, the SDK is not installed.
        """
        require("oci")
        self.region = region
        self._login = login
        self._endpoint_url = endpoint_url
        self._clients: dict[str, Any] = {}
        self._identity: tuple[dict[str, Any], Any] | None = None
        self._lock = threading.Lock()

    def client(self, service: str) -> Any:
        """Return the SDK's client of a service: answers stay as they came, in JSON."""
        import oci  # type: ignore[import-untyped]  # noqa: PLC0415  # 1 s; it ships no types

        with self._lock:
            if service not in self._clients:
                module, name = _CLIENTS[service]
                self._identity = self._identity or _logged_in(self._login, self.region)
                config, signer = self._identity
                given: dict[str, Any] = {"signer": signer}
                if self._endpoint_url is not None:
                    given["service_endpoint"] = f"{self._endpoint_url}/{service}"
                elif host := _hosts().get(f"oci_{module}.{name}"):
                    given["service_endpoint"] = host
                self._clients[service] = getattr(getattr(oci, module), name)(
                    {**config, "region": self.region},
                    skip_deserialization=True,
                    circuit_breaker_strategy=oci.circuit_breaker.NoCircuitBreakerStrategy(),
                    **given,
                )
            return self._clients[service]

    def call(
        self, answer: type[T], service: str, operation: str, *arguments: Any, **parameters: Any
    ) -> T:
        """Call an operation ("get_subnet") and return its response.

        It is called once: OCI reports "out of host capacity" as an internal error, for which the
        SDK's own retries would wait ten minutes.

        Raises:
            OciError: OCI refused, or could not be reached.
        """
        with _Translated():
            call = getattr(self.client(service), operation)
            return convert(call(*arguments, **parameters).data, answer, strict=False)

    def find(self, answer: type[T], service: str, operation: str, *arguments: Any) -> T | None:
        """Return the response; None where this login sees no such resource. Raises as `ask`."""
        try:
            return self.call(answer, service, operation, *arguments)
        except OciError as error:
            if error.code == NOT_FOUND:
                return None
            raise

    def pages(
        self, answer: type[T], service: str, operation: str, *arguments: Any, **parameters: Any
    ) -> Iterator[T]:
        """Yield the pages of a list; raises as `ask`."""
        page: str | None = None
        while True:
            with _Translated():
                more = {} if page is None else {"page": page}
                call = getattr(self.client(service), operation)
                reply = call(*arguments, **parameters, **more)
                found = convert(reply.data, answer, strict=False)
            yield found
            page = reply.next_page
            if not page:
                return


def _hosts() -> dict[str, str]:
    """Return client -> endpoint, of those that the engine's provider calls at another one.

    Networks that reach OCI through private endpoints alone name them there (oracle/
    terraform-provider-oci, provider_clients.go and GetEnvSettingWithDefault, November 2026).
    """
    names = (f"{prefix}CLIENT_HOST_OVERRIDES" for prefix in ("TF_VAR_", "OCI_", ""))
    setting = next((value for name in names if (value := os.environ.get(name))), "")
    pairs = (part.split("=") for part in setting.split(";"))
    hosts = {pair[0]: pair[1] for pair in pairs if len(pair) == 2}  # noqa: PLR2004  # others are passed over there too
    return {name: host if "://" in host else f"https://{host}" for name, host in hosts.items()}


def engine_login() -> dict[str, str]:
    """Return the variables that let the engine's provider log in as `Api` does.

    It reads neither OCI_CLI_PROFILE nor OCI_CLI_AUTH, and uses no session token by default
    (oracle/terraform-provider-oci, provider.go, November 2026). {}: there is no configuration.
    """
    import oci  # noqa: PLC0415  # as above

    if os.environ.get("OCI_CLI_AUTH") == "instance_principal":
        return {"TF_VAR_auth": "InstancePrincipal"}
    profile = os.environ.get("OCI_CLI_PROFILE", "DEFAULT")
    try:
        config = oci.config.from_file(profile_name=profile)
    except (oci.exceptions.ClientError, FileNotFoundError, ValueError):
        return {}  # the first request reports what is missing
    if config.get("security_token_file"):
        return {"TF_VAR_auth": "SecurityToken", "TF_VAR_config_file_profile": profile}
    given = {
        "tenancy_ocid": config.get("tenancy"),
        "user_ocid": config.get("user"),
        "fingerprint": config.get("fingerprint"),
        "private_key_path": config.get("key_file"),
        "private_key_password": config.get("pass_phrase"),
    }
    return {"TF_VAR_auth": "ApiKey"} | {
        f"TF_VAR_{key}": text for key, text in given.items() if text
    }


def _logged_in(login: Mapping[str, str] | None, region: str) -> tuple[dict[str, Any], Any]:
    """Return configuration and signer: an Api makes them once, as the key is checked each time."""
    import oci  # noqa: PLC0415  # as above

    if login is not None:
        return dict(login), _signer({**login, "region": region})
    if os.environ.get("OCI_CLI_AUTH") == "instance_principal":
        return {}, oci.auth.signers.InstancePrincipalsSecurityTokenSigner()
    config = oci.config.from_file(profile_name=os.environ.get("OCI_CLI_PROFILE", "DEFAULT"))
    token_file = config.get("security_token_file")
    if not token_file:
        return config, _signer({**config, "region": region})
    with open(os.path.expanduser(token_file), encoding="utf-8") as file:  # noqa: PTH111, PTH123  # as the SDK documents it
        token = file.read()
    key = oci.signer.load_private_key_from_file(config["key_file"])
    return config, oci.auth.signers.SecurityTokenSigner(token, key)


def _signer(config: dict[str, Any]) -> Any:
    """Return what signs with a configuration's own key, as each client of the SDK would make it."""
    import oci  # noqa: PLC0415  # as above

    oci.config.validate_config(config)
    return oci.signer.Signer(
        config["tenancy"],
        config["user"],
        config["fingerprint"],
        private_key_file_location=config.get("key_file"),
        pass_phrase=config.get("pass_phrase"),
        private_key_content=config.get("key_content"),
    )


class _Translated:
    """Turns what the SDK raises into an OciError."""

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: object
    ) -> None:
        import oci  # noqa: PLC0415  # as above

        if isinstance(error, oci.exceptions.ServiceError):
            code = str(error.code)
            message = f"{code}: {error.message} (HTTP {error.status}, request {error.request_id})"
            raise OciError(code, translate(message)) from error
        unconfigured = (
            oci.exceptions.ClientError,  # the configuration's errors derive from it
            oci.exceptions.InvalidPrivateKey,
            oci.exceptions.MissingPrivateKeyPassphrase,
            FileNotFoundError,
        )
        if isinstance(error, unconfigured):
            message = f"NotAuthenticated: {type(error).__name__}: {error}"
            raise OciError("NotAuthenticated", translate(message)) from error
        if isinstance(error, oci.exceptions.RequestException | oci.exceptions.ConnectTimeout):
            raise OciError(type(error).__name__, translate(str(error))) from error
