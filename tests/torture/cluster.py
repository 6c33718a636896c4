"""The cluster to inject faults into: a spec of simulated nodes, its places, what really exists.

What is there is read past gcluster, from the file that is the simulated site and from the state.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gcluster.lifecycle.state.store import DamageError, without_hash

SPEC = """\
apiVersion: gcluster/v1
name: torture
sites:
  lab: {{provider: simulated{site}}}
pools:
  head: {{site: lab, role: controller}}
  gpu: {{site: lab, machine: sim.h100x8, count: {count}}}
scheduler: {{type: slurm}}
"""


class TortureCluster:
    """One cluster in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        """Write the spec; nothing is there yet."""
        self.folder = folder
        folder.mkdir(parents=True)
        self.spec = folder / "cluster.yaml"
        self.count = 3
        self.site = ""
        self.ever: set[str] = set()
        """All nodes that the spec ever had."""
        self.write()

    def write(self, *, count: int | None = None, site: str | None = None) -> None:
        """Write the spec again; `site` is further keys of it, with a comma in front."""
        self.count = self.count if count is None else count
        self.site = self.site if site is None else site
        self.ever |= self.wanted
        self.spec.write_text(SPEC.format(site=self.site, count=self.count), encoding="utf-8")

    @property
    def state(self) -> Path:
        """Folder of the state; it need not exist."""
        return self.folder / ".gcluster" / "torture"

    @property
    def wanted(self) -> set[str]:
        """Nodes that the spec has."""
        return {"head", *(f"gpu{number:03d}" for number in range(1, self.count + 1))}

    def nodes(self) -> dict[str, dict[str, Any]]:
        """Return what is at the site: name -> node; a name that is there twice is suffixed."""
        found: dict[str, dict[str, Any]] = {}
        for path in sorted((self.folder / "data/gcluster/work").glob("*/simulated-*/nodes.json")):
            for name, node in json.loads(path.read_bytes())["nodes"].items():
                found[name if name not in found else f"{name} in {path.parent.parent.name}"] = node
        return found

    def objects(self) -> list[str]:
        """Return the keys of the state."""
        files = (path for path in self.state.rglob("*") if path.is_file())
        return sorted(str(path.relative_to(self.state)) for path in files)

    def content(self, key: str) -> bytes | None:
        """Return the bytes of an object of the state; None: it is gone."""
        path = self.state / key
        return path.read_bytes() if path.is_file() else None

    def on_record(self) -> set[str] | None:
        """Return the ids that exist by the events; None: events are damaged, accepted or not."""
        existing: set[str] = set()
        for path in sorted((self.state / "events").glob("*.json")):
            try:
                content = without_hash(f"events/{path.name}", path.read_bytes())
            except DamageError:
                return None
            event = json.loads(content)
            data = event["data"]
            if event["kind"] == "DamageAccepted":
                return None
            if event["kind"] == "ResourcesCreated":
                existing |= set(data["created"].values())
            elif event["kind"] == "ResourcesDeleted":
                existing -= {gone["provider_id"] for gone in data["deleted"]}
        return existing
