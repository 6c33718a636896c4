"""Where the engine keeps a stack, in Pulumi's own words, and what its processes are told."""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path
from urllib.parse import quote, unquote, urlencode

import msgspec

from ...schemas.derived.state_url import parse_state_url

FILE = "file://"
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
        account = parse_state_url(self.state).account
        return {
            # The Go CDK takes a shared key of the account that the environment names, no other.
            **({"AZURE_STORAGE_ACCOUNT": account} if account else {}),
            "PULUMI_BACKEND_URL": self.backend,
            "PULUMI_CONFIG_PASSPHRASE": passphrase,
            "PULUMI_SKIP_UPDATE_CHECK": "true",
        }


def backend_url(state: str) -> str:
    """Return the form that Pulumi takes (pulumi/pulumi, pkg/backend/diy, read November 2026).

    The path behind a bucket or container is a prefix there too. A query goes on as it is: Go CDK
    knows region, endpoint, profile and others of s3, domain and protocol of azblob. Azure's account
    is in the query there (`storage_account`, Go CDK azureblob since 0.27) and is the host here. A
    file's path stands in the spec as it is, and percent-encoded there.

    Raises:
        ValueError: another scheme, or an azblob URL without a container.
    """
    at = parse_state_url(state)
    folder = "/".join(part for part in (at.path, FOLDER) if part)
    if at.scheme == "file":
        return f"{FILE}{quote(folder)}"
    account = [("storage_account", at.account)] if at.account else []
    options = [*account, *at.options.items()]
    query = f"?{urlencode(options)}" if options else ""
    return f"{at.scheme}://{at.bucket}/{folder}{query}"


def make_backend(place: StackPlace) -> None:
    """Make the folder of a file:// backend: the engine wants it to exist."""
    if place.backend.startswith(FILE):
        folder = Path(unquote(place.backend.removeprefix(FILE)))
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    place.workdir.mkdir(mode=0o700, parents=True, exist_ok=True)


_OWNER = re.compile(r"created by \S+@(?P<host>\S+) \(pid (?P<pid>\d+)\)")


def is_left_behind(refusal: str) -> bool:
    """Say whether every lock that the refusal names is of a process of this machine that is gone.

    A lock of another machine is never taken to be left behind: `gcluster unlock` is for a person
    who knows.
    """
    owners = _OWNER.findall(refusal)
    here = socket.gethostname()
    return bool(owners) and all(host == here and not _runs(int(pid)) for host, pid in owners)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is there, and another's
        return True
    return True
