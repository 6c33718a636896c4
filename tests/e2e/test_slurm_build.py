"""Slurm that the distribution lacks: built on a node, kept in the mirror, taken by the others.

The source is SchedMD's own, from its site, or from the folder GCLUSTER_SLURM_SOURCES where that
can't be reached: files with the names and checksums of the catalog. The build takes minutes of all
cores. The tests run in order on one cluster.
"""

from __future__ import annotations

import functools
import http.server
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.spec import ClusterSoftware
from gcluster.schemas.stack.slurm import SlurmSource, slurm_sources

from .conftest import LiveCluster

pytestmark = [pytest.mark.local, pytest.mark.slurm_build]

FOLDER = os.environ.get("GCLUSTER_SLURM_SOURCES", "")
DISTRIBUTIONS = "24.11.5"
STARTED = "systemctl show --property ActiveEnterTimestampMonotonic --value"
BACKUPS = "ls /var/backups/gcluster/slurmctld /var/backups/gcluster/slurmdbd"


def wanted() -> SlurmSource:
    """Return the newest release whose source is in the folder; without a folder the newest."""
    known = slurm_sources(load_catalog().sources, ClusterSoftware())
    return next(each for each in known if not FOLDER or Path(FOLDER, each.path).is_file())


def own_address() -> str:
    """Return an address of this machine that nodes reach."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))
        return str(probe.getsockname()[0])


class Site:
    """A cluster with accounts whose Slurm changes."""

    def __init__(self, live: LiveCluster, sources: dict[str, Any]) -> None:
        """Write the spec with the distribution's Slurm; nothing is started."""
        self.live = live
        live.write_spec(nodes=1)
        self.spec: dict[str, Any] = yaml.safe_load(live.spec.read_text())
        self.spec["scheduler"]["accounting"] = {}
        self.sources = sources
        self.write("auto")

    def write(self, version: str) -> None:
        """Write the spec with a Slurm."""
        self.spec["software"] = {"slurm": version, "sources": self.sources}
        self.live.spec.write_text(yaml.safe_dump(self.spec, sort_keys=False))

    def up(self) -> Any:
        """Run `up` to its end."""
        return self.live.json("up", str(self.live.spec), "--yes")

    def on(self, node: str, command: str) -> str:
        """Run a shell line on a node."""
        return self.live.on(node, command).strip()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A cluster that is up with the distribution's Slurm, and a held job."""
    live = LiveCluster(tmp_path_factory.mktemp("slurm-build"))
    handler = functools.partial(
        http.server.SimpleHTTPRequestHandler, directory=FOLDER or "/nowhere"
    )
    server = http.server.ThreadingHTTPServer(("0.0.0.0", 0), handler)  # noqa: S104  # for the nodes
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://{own_address()}:{server.server_port}"
    made = Site(live, {wanted().artefact: {"url": url}} if FOLDER else {})
    try:
        made.up()
        yield made
    finally:
        server.shutdown()
        live.gcluster("down", str(live.spec), "--yes", expect=None)


def test_a_version_that_the_distribution_lacks_is_built_and_the_queue_continues(site: Site) -> None:
    assert DISTRIBUTIONS in site.on("head", "slurmctld -V")
    job = site.on("head", "cd /tmp && runuser -u ada -- sbatch --parsable --hold --wrap true")
    version = wanted().version
    site.write(version)
    shown = site.live.json("software", str(site.live.spec))["pools"]["gpu"]["components"]
    (slurm,) = [each for each in shown if each["key"] == "slurm"]
    assert (slurm["version"], slurm["install"]) == (version, "built")

    done = site.up()

    assert done["verdict"]["verdict"] == "pass"
    for node, program in (("head", "slurmdbd"), ("head", "slurmctld"), ("gpu001", "slurmd")):
        assert site.on(node, f"{program} -V") == f"slurm {version}"
    assert version in site.on("head", "scontrol show node gpu001 | grep -o 'Version=[0-9.]*'")
    assert site.on("head", "squeue --noheader --format='%i %T'") == f"{job} PENDING"
    order = [
        int(site.on(node, f"{STARTED} {unit}"))
        for node, unit in (("head", "slurmdbd"), ("head", "slurmctld"), ("gpu001", "slurmd"))
    ]
    assert order == sorted(order)
    assert f"before-{version}" in site.on("head", BACKUPS)
    assert site.on("head", "dpkg-query -W debhelper devscripts 2>/dev/null || true") == ""


def test_a_second_up_changes_nothing(site: Site) -> None:
    assert site.up()["changed"] is False


def test_a_node_that_comes_later_takes_the_packages_and_it_is_not_built_again(site: Site) -> None:
    built = "stat -c %y /srv/gcluster/package-mirror/slurm/*/*/SHA256SUMS"
    before = site.on("head", built)
    site.spec["pools"]["gpu"]["count"] = 2
    site.write(wanted().version)

    site.up()

    assert site.on("head", built) == before
    ran = site.on("head", "srun --nodes=2 --partition=train hostname | sort")
    assert ran.split() == ["gpu001", "gpu002"]


def test_the_way_back_is_refused_before_anything_changes(site: Site) -> None:
    site.write("distribution")
    output = site.live.gcluster("up", str(site.live.spec), "--yes", expect=None)
    assert output.returncode != 0
    assert "GC1192" in output.stdout + output.stderr
    assert site.on("head", "slurmctld -V") == f"slurm {wanted().version}"
