"""Where the engine keeps a stack, in Pulumi's own words, and what its processes are told."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote, urlsplit

import msgspec

FOLDER = "pulumi"
"""Stacks are kept in this folder of the cluster's state, beside journal and ledger."""


class StackPlace(msgspec.Struct, frozen=True, kw_only=True):
    """One stack: a site of a cluster."""

    cluster: str
    site: str
    state: str
    """The spec's state URL: file://, s3://, gs://, azblob://ACCOUNT/CONTAINER."""
    workdir: Path
    """0700 directory on this machine, kept between runs."""

    @property
    def project(self) -> str:
        """The project's name; stacks of all clusters are of one kind, so it tells the cluster."""
        return f"gcluster-{self.cluster}"

    @property
    def stack(self) -> str:
        """The stack's name."""
        return self.site

    @property
    def backend(self) -> str:
        """The URL that the engine is given."""
        return backend_url(self.state)

    def environment(self, passphrase: str) -> dict[str, str]:
        """Return what the engine's processes get in their environment, and nothing else does.

        The passphrase is a secret: it must never stand in arguments, in files or in logs.
        """
        return {
            "PULUMI_BACKEND_URL": self.backend,
            "PULUMI_CONFIG_PASSPHRASE": passphrase,
            "PULUMI_SKIP_UPDATE_CHECK": "true",
        }


def backend_url(state: str) -> str:
    """Return the form that Pulumi takes (Pulumi docs, "State and backends", November 2026).

    Azure's account is a query there and the host here; the others are alike.

    Raises:
        ValueError: another scheme.
    """
    parts = urlsplit(state)
    path = parts.path.rstrip("/")
    if parts.scheme == "file":
        return f"file://{path}/{FOLDER}"
    if parts.scheme in {"s3", "gs"}:
        query = f"?{parts.query}" if parts.query else ""
        return f"{parts.scheme}://{parts.netloc}{path}/{FOLDER}{query}"
    if parts.scheme == "azblob":
        return f"azblob:/{path}/{FOLDER}?storage_account={quote(parts.netloc)}"
    message = f"state {state} is at none of file://, s3://, gs:// and azblob://"
    raise ValueError(message)


def make_backend(place: StackPlace) -> None:
    """Make the folder of a file:// backend: the engine wants it to exist."""
    if place.backend.startswith("file://"):
        folder = Path(place.backend.removeprefix("file://"))
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    place.workdir.mkdir(mode=0o700, parents=True, exist_ok=True)
