"""Credentials for reaching a cluster's nodes, kept in its state, so that any machine can continue.

The key that logs in to nodes of clouds is in the vault; the host keys that were read when nodes
first started are stored with it, since a cloud shows them for a limited time only. Both are written
to files in the cluster's directory of this machine, where providers and ssh read them. A local
site's nodes are on this machine alone, and so is what reaches them.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from ...schemas.spec import CloudSite
from ...schemas.structure.decoding import decode_json
from ...stacks.io import atomic
from ...stacks.io.ssh import ensure_client_key, write_client_key
from ..state import StateStore
from . import places
from .cluster import Cluster

KEY_NAME = "ssh-client"
"""Of the secret in the vault."""
PREFIX = "host-keys"
_Keys = dict[str, tuple[str, ...]]
_CACHE = "host-keys.json"
"""What every cloud calls its file of host keys, in its site's directory (`SiteSession.folder`)."""


def write_credentials(cluster: Cluster, workdir: Path, *, making: bool = False) -> None:
    """Write the credentials of the state into `workdir`; existing files are kept.

    Args:
        cluster: whose nodes.
        workdir: its directory on this machine.
        making: nodes may be created, so a missing key is generated. Not for read-only commands,
            which write nothing.

    Raises:
        LifecycleError: the key of the secrets is missing, or not the cluster's (GC905).
    """
    sites = cluster.spec.sites.values()
    if any(isinstance(site, CloudSite) and site.ssh.key is None for site in sites):
        _write_key(cluster, workdir, making=making)
    for folder, site in _folders(cluster, workdir):
        here, kept = _local_folders(folder), _stored_key(cluster, site)
        if not kept.keys() <= here.keys():  # a machine never changes its keys: more is all there is
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            atomic.write(folder / _CACHE, msgspec.json.encode({**kept, **here}))


def store_host_keys(cluster: Cluster) -> None:
    """Store host keys that were read since; requires the lock."""
    for folder, site in _folders(cluster, places.work_path(cluster.id)):
        here, kept = _local_folders(folder), _stored_key(cluster, site)
        if not here.keys() <= kept.keys():
            cluster.store.put(f"{PREFIX}/{site}.json", msgspec.json.encode({**kept, **here}))


def stored_host_keys(store: StateStore) -> list[str]:
    """Return the objects that hold them, which end with the nodes that had them."""
    return store.list(PREFIX)


def _stored_key(cluster: Cluster, site: str) -> _Keys:
    return cluster.store.read(f"{PREFIX}/{site}.json", _Keys) or {}


def _local_folders(folder: Path) -> _Keys:
    with suppress(FileNotFoundError, msgspec.MsgspecError):
        return decode_json((folder / _CACHE).read_bytes(), _Keys)
    return {}


def _folders(cluster: Cluster, workdir: Path) -> Iterator[tuple[Path, str]]:
    """Yield the directory of each cloud site, as `SiteSession.folder` names it."""
    for name, site in cluster.spec.sites.items():
        if site.is_cloud:
            yield workdir / f"{site.provider}-{name}", name


def _write_key(cluster: Cluster, workdir: Path, *, making: bool) -> None:
    if making:
        cluster.vault.ensure(KEY_NAME, lambda: _first_key(workdir))
    elif cluster.vault.version(KEY_NAME) is None:
        return
    write_client_key(workdir, cluster.vault.reveal(KEY_NAME))


def _first_key(workdir: Path) -> bytes:
    """Return the key that an earlier version made on this machine, or a new one."""
    if (workdir / "id_ed25519").exists():
        return (workdir / "id_ed25519").read_bytes()
    with TemporaryDirectory(dir=workdir, prefix=f".{secrets.token_hex(4)}-") as scratch:
        return ensure_client_key(Path(scratch)).read_bytes()
