"""The keys by which the pods of one AllReduce let each other in: made for it, gone with it."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from ...inventory.compile.kubernetes_objects.allreduce import RUN
from ...inventory.compile.kubernetes_objects.objects import SYSTEM_NAMESPACE, Object, new
from ...inventory.compile.steps import Json
from ...stacks.client_key import ensure_client_key, public_text

HOST_ALIAS = "allreduce"
"""Name that allreduce.sh looks for in known_hosts, whatever pod it asks."""


def keys_of_a_run(name: str) -> Object:
    """Return the secret that the pods of a run wait for.

    Raises:
        ProviderError: ssh-keygen isn't installed or failed.
    """
    with TemporaryDirectory() as folder:
        client, server = (_made(Path(folder) / part) for part in ("client", "server"))
        held: dict[str, Json] = {
            "key": client.read_text(encoding="utf-8"),
            "authorized_keys": public_text(client) + "\n",
            "host_key": server.read_text(encoding="utf-8"),
            "known_hosts": f"{HOST_ALIAS} {public_text(server)}\n",
        }
    return new(
        "v1",
        "Secret",
        name,
        namespace=SYSTEM_NAMESPACE,
        labels={RUN: name},
        type="Opaque",
        stringData=held,
    )


def _made(folder: Path) -> Path:
    folder.mkdir(mode=0o700)
    return ensure_client_key(folder)
