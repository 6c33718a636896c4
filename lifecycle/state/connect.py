"""Opens the store that a state URL names: a folder, or a bucket of S3, GCS or Azure.

Rights come from where the clouds' own tools take them: the environment, a workload's or machine's
identity, and on a person's machine a profile of AWS, gcloud's or az' login. URLs hold none.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta
from importlib.util import find_spec
from shutil import which
from typing import TYPE_CHECKING, Any

from obstore.exceptions import BaseError
from obstore.store import AzureStore, GCSStore, S3Store

from ...schemas.derived.state_url import StateUrl, parse_state_url
from ..cluster.outcome import failure
from .bucket import Bucket, DirectoryBucket, ObstoreBucket, broken

if TYPE_CHECKING:
    from obstore.store import ClientConfig, GCSCredential, ObjectStore, RetryConfig


_PATIENCE_S = 30
"""How long a request is tried again: a person waits, and a lock is worth no longer wait."""
_STATIC_AWS = (
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
)
"""Where one of these is set, AWS' rights are in the environment: no profile is read."""
_STATIC_AZURE = (
    "AZURE_STORAGE_ACCOUNT_KEY",
    "AZURE_STORAGE_KEY",
    "AZURE_STORAGE_SAS_TOKEN",
    "AZURE_CLIENT_ID",
    "AZURE_FEDERATED_TOKEN_FILE",
    "IDENTITY_ENDPOINT",
)
_HINTS = {
    "s3": "check the bucket's name and region, and that you may list, read and write it: "
    "AWS_PROFILE or AWS_ACCESS_KEY_ID names the login",
    "gs": "check the bucket's name, and that you may list, read and write it: "
    "gcloud auth application-default login, or GOOGLE_APPLICATION_CREDENTIALS",
    "azblob": "check account and container, and that you have Storage Blob Data Contributor there: "
    "az login, AZURE_CLIENT_ID, or AZURE_STORAGE_KEY",
}


def connect(url: str) -> Bucket:
    """Return the store that a state URL names. Nothing is created before the first write.

    Raises:
        LifecycleError: the URL names no place, or its path can't hold a store.
    """
    try:
        place = parse_state_url(url)
    except ValueError as wrong:
        raise failure("GC901", f"state can't be kept at {url}", hint=str(wrong)) from None
    if place.scheme == "file":
        return DirectoryBucket(place.path)
    return CloudBucket(place, url)


class CloudBucket(ObstoreBucket):
    """A bucket that exists: gcluster creates none, since its owner decides who may read it."""

    def __init__(self, place: StateUrl, url: str) -> None:
        """Open the bucket; nothing is requested yet.

        Raises:
            LifecycleError: no credentials are found, or their configuration is malformed.
        """
        name, hint = url.partition("?")[0], _HINTS[place.scheme]
        try:
            store = _OPENERS[place.scheme](place)
        except (BaseError, OSError, ValueError) as error:
            raise broken(name, "it can't be opened", error, hint) from error
        super().__init__(store, name, hint)
        self._is_there = False

    def get(self, key: str) -> bytes | None:
        """Return the bytes of an object, or None; a bucket that isn't there is no empty one."""
        found = super().get(key)
        if found is None and not self._is_there:
            self.list("lock")  # which fails where there is no bucket
        self._is_there = True
        return found


def _clients(endpoint: str = "") -> ClientConfig:
    # One address in clear text: an emulator's, or a store in one's own rack.
    return {"allow_http": endpoint.startswith("http://"), "connect_timeout": "5s", "timeout": "30s"}


def _retries() -> RetryConfig:
    return {"max_retries": 8, "retry_timeout": timedelta(seconds=_PATIENCE_S)}


def _s3(place: StateUrl) -> ObjectStore:

    options = place.options
    endpoint = (
        options.get("endpoint")
        or os.environ.get("AWS_ENDPOINT_URL_S3")
        or os.environ.get("AWS_ENDPOINT_URL", "")
    )
    config: dict[str, Any] = {}
    if region := options.get("region"):
        config["region"] = region
    if endpoint:
        config["endpoint"] = endpoint
        # A self-hosted server has no host name for each bucket, unless the URL says so.
        config["virtual_hosted_style_request"] = options.get("use_path_style") == "false"
    rights = _profile(options.get("profile"))
    return S3Store(
        place.bucket,
        prefix=place.path or None,
        client_options=_clients(endpoint),
        retry_config=_retries(),
        credential_provider=rights,
        config=config,  # type: ignore[arg-type] # built by key: each of them is one of S3Config
    )


def _profile(name: str | None) -> Any:
    """Return what reads a profile of AWS' files through boto3; None: obstore finds them itself."""
    if name is None and any(os.environ.get(key) for key in _STATIC_AWS):
        return None
    if find_spec("boto3") is None:
        if name is None:
            return None
        raise failure(
            "GC901",
            f'the AWS profile "{name}" of the state URL can\'t be read without boto3',
            hint="pip install 'gcluster[aws]', or take profile= out and set AWS_ACCESS_KEY_ID",
        )
    from boto3 import Session  # type: ignore[import-untyped]  # noqa: PLC0415 - rarely needed
    from botocore.exceptions import (  # type: ignore[import-untyped]  # noqa: PLC0415 - as above
        BotoCoreError,
    )
    from obstore.auth.boto3 import Boto3CredentialProvider  # noqa: PLC0415 - as above

    try:
        session = Session(profile_name=name)
        if session.get_credentials() is None:
            return None
        return Boto3CredentialProvider(session)
    except BotoCoreError as error:
        raise failure("GC901", f"no AWS profile can be used: {error}", hint=_HINTS["s3"]) from error


def _gs(place: StateUrl) -> ObjectStore:

    host = os.environ.get("STORAGE_EMULATOR_HOST", "")
    if not host:
        return GCSStore(
            place.bucket,
            prefix=place.path or None,
            client_options=_clients(),
            retry_config=_retries(),
        )
    endpoint = host if "://" in host else f"http://{host}"
    return GCSStore(
        place.bucket,
        prefix=place.path or None,
        client_options=_clients(endpoint),
        retry_config=_retries(),
        credential_provider=_no_rights,
        config={"base_url": endpoint},
    )


def _no_rights() -> GCSCredential:
    """Return what an emulator is shown: obstore would use a real login."""
    return {"token": "emulator", "expires_at": None}


def _azblob(place: StateUrl) -> ObjectStore:

    options = place.options
    domain = options.get("domain", "")
    config: dict[str, Any] = {"account_name": place.account}
    endpoint = ""
    if domain:
        protocol = options.get("protocol", "https")
        # An emulator has the account in the path and not in the name of its host.
        local = options.get("localemu") == "true" or domain.startswith(("localhost", "127.0.0.1"))
        endpoint = (
            f"{protocol}://{domain}/{place.account}"
            if local
            else f"{protocol}://{place.account}.{domain}"
        )
        config["endpoint"] = endpoint
    if key := os.environ.get("AZURE_STORAGE_KEY"):  # what az and Pulumi read; obstore has another
        config["account_key"] = key
    if which("az") and not any(os.environ.get(name) for name in _STATIC_AZURE):
        config["use_azure_cli"] = True  # a user's login; else the machine's own identity is used
    return AzureStore(
        place.bucket,
        prefix=place.path or None,
        client_options=_clients(endpoint),
        retry_config=_retries(),
        config=config,  # type: ignore[arg-type] # built by key: each of them is one of AzureConfig
    )


_OPENERS: dict[str, Callable[[StateUrl], ObjectStore]] = {"s3": _s3, "gs": _gs, "azblob": _azblob}
