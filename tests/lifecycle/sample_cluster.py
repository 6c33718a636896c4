"""A cluster of simulated nodes in a folder of its own, driven as the command line drives one."""

from __future__ import annotations

from pathlib import Path

import msgspec

from gcluster.lifecycle.cluster.cluster import Cluster, open_cluster
from gcluster.lifecycle.cluster.progress import Reporter, silent
from gcluster.lifecycle.cluster.sites import open_sites
from gcluster.lifecycle.down.down import DownResult, down
from gcluster.lifecycle.up.phase import UpResult
from gcluster.lifecycle.up.up import up

SIMULATED = """\
apiVersion: gcluster/v1
name: {name}
sites:
  lab: {{provider: simulated{site}}}
pools:
  head: {{site: lab, role: controller}}
  gpu: {{site: lab, machine: sim.h100x8, count: {count}{pool}}}
scheduler: {{type: slurm}}
"""

METAL = """\
apiVersion: gcluster/v1
name: metal
sites:
  room:
    provider: bare-metal
    ssh: {{user: nobody, port: {port}}}
pools:
  head: {{site: room, role: controller, hosts: [{{name: head01, address: 127.0.0.1}}]}}
  gpu: {{site: room, machine: hgx-h100-8, hosts: [{{name: gpu001, address: 127.0.0.2}}]}}
scheduler: {{type: slurm}}
"""
"""Two hosts of this machine, where nothing listens on the port."""


class SampleCluster:
    """One spec file and the cluster it describes; every call opens the cluster again."""

    def __init__(self, path: Path) -> None:
        """Write a spec of one head and three nodes."""
        self.path = path
        self.write()

    def write(self, *, name: str = "trial", count: int = 3, site: str = "", pool: str = "") -> None:
        """Write the spec; `site` and `pool` are further keys, each with a comma in front."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        text = SIMULATED.format(name=name, count=count, site=site, pool=pool)
        self.path.write_text(text, encoding="utf-8")

    @property
    def state(self) -> Path:
        """Directory of the cluster's state; it need not exist."""
        return self.path.parent / ".gcluster" / "trial"

    def open(self, *, running: bool = False) -> Cluster:
        """Open the cluster by the path of its spec."""
        return open_cluster(str(self.path), running=running)

    def up(self, report: Reporter = silent, *, answer: bool = True, allow: str = "") -> UpResult:
        """Bring it up, with this answer to the question; `allow` names what a guard holds back."""
        named = frozenset(allow.split())
        return up(self.open(), report, confirm=lambda _: answer, allow=named)

    def down(self, report: Reporter = silent, *, answer: bool = True) -> DownResult:
        """Take it down, with this answer to the question."""
        return down(self.open(running=True), report, confirm=lambda _: answer)

    def in_the_provider(self) -> dict[str, str]:
        """Return what exists as the provider sees it: "site/kind/name" -> id."""
        cluster = self.open(running=True)
        return {
            f"{site.name}/{item.kind}/{item.name}": item.provider_id
            for site in open_sites(cluster)
            for item in site.provider.refresh(site.context)
        }

    def in_the_ledger(self) -> dict[str, str]:
        """Return what exists according to the ledger: "site/kind/name" -> id."""
        cluster = self.open(running=True)
        return {f"{e.site}/{e.key}": e.provider_id for e in cluster.ledger.existing()}

    def created_ever(self) -> int:
        """Return how many creations were ever requested from the simulated site."""
        cluster = self.open(running=True)
        stored = (cluster.workdir / "simulated-lab" / "nodes.json").read_bytes()
        return int(msgspec.json.decode(stored)["creations"])

    def stamps(self) -> dict[str, frozenset[str]]:
        """Return node -> the steps it carries."""
        from gcluster.stacks.simulated.stamps import read_stamps  # noqa: PLC0415  # only here

        (site,) = open_sites(self.open(running=True))
        return {host: frozenset(steps) for host, steps in read_stamps(site.context).items()}


def tree(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder with its content; none where there is no folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
