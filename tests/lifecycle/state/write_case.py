"""Writes the state that this version leaves, as a case for all later ones: once, at its release.

Usage: python -m tests.lifecycle.state.write_case VERSION
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from unittest.mock import patch

from gcluster.lifecycle.cluster.cluster import open_cluster
from gcluster.lifecycle.cluster.progress import silent
from gcluster.lifecycle.state import StateStore, events, lock, newest_applied
from gcluster.lifecycle.state.process import ProcessIdentity
from gcluster.lifecycle.up.up import up

CASES = Path(__file__).parents[2] / "cases" / "state"
KEY = "AGE-SECRET-KEY-1NRX0Q9N5QDDYWDNNDAK6JNHTL7RKHGHNQPYVUYLYKNQGJ7HN07LQ0CWTKT"
"""Of the cases alone: it encrypts the random secrets of nodes that never were."""
PLACE = "file:///srv/gcluster/kept"
"""Where the specs of the cases say that their state is."""
NOBODY = ProcessIdentity(
    who="ops@desk",
    machine="0123456789abcdef",
    boot="00000000-0000-0000-0000-000000000000",
    namespace="4026531836",
    pid=14552,
    started="4443876",
)
"""Who wrote the cases, as recorded in them."""


def catalog_of_now(kept: bytes) -> bytes:
    """Return a kept catalog with what machine types have had to say since, as its owner adds it."""
    if b"cpu:" in kept:
        return kept
    return kept.replace(b"    gpu:", b"    cpu: {architecture: x86_64}\n    gpu:")


def main() -> None:
    """Bring the cluster of the oldest case up, and keep what lies in its state then."""
    case = CASES / sys.argv[1]
    if case.exists():
        sys.exit(f"{case} is there: what a version wrote is never written again")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for variable in ("DATA", "CACHE", "CONFIG"):
            os.environ[f"XDG_{variable}_HOME"] = str(folder / variable)
        os.environ["GCLUSTER_FIXTURE_KEY"] = KEY
        applied = newest_applied(StateStore.open(f"file://{CASES / 'format-4'}"))
        if applied is None:
            raise AssertionError
        (folder / "ours.yaml").write_bytes(catalog_of_now(applied.catalogs["00.yaml"]))
        spec = folder / "cluster.yaml"
        spec.write_text(applied.spec, encoding="utf-8")
        cluster = open_cluster(str(spec))
        cluster.state_url = f"file://{folder}/state"  # what is stored says PLACE
        with (
            patch.object(lock, "this_process", lambda: NOBODY),
            patch.object(events, "who", lambda: NOBODY.who),
        ):
            up(cluster, silent, confirm=lambda _: True)
        shutil.copytree(folder / "state", case)


if __name__ == "__main__":
    main()
