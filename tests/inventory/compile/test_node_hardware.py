"""What a pool says of its own nodes is what Slurm gets, over what the catalog says."""

from __future__ import annotations

from typing import Any

import pytest

from gcluster.inventory.bare_metal import bare_metal_hosts
from gcluster.inventory.compile import compile_cluster
from gcluster.inventory.hosts import ClusterInventory
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load_text

SPEC = """\
apiVersion: gcluster/v1
name: campus
sites: {{room: {{provider: bare-metal, ssh: {{user: ops}}}}}}
pools:
  head: {{site: room, role: controller, hosts: head01}}
  gpu: {{site: room, machine: {machine}, hosts: gpu01{said}}}
scheduler: {{type: slurm}}
"""
WRITTEN = ", cpu: {sockets: 2, cores: 48, threads_per_core: 2}, memory: 1024 GiB"


def _node(machine: str, message: str = "") -> dict[str, Any]:
    loaded = load_text(SPEC.format(machine=machine, said=message))
    assert loaded.spec is not None, loaded.diagnostics
    inventory = ClusterInventory(cluster="campus", hosts=bare_metal_hosts(loaded.spec, "room"))
    compiled = compile_cluster(loaded.spec, inventory, load_catalog())
    steps = {step.key: step for step in compiled.groups[0].steps}
    node: dict[str, Any] = steps["slurm.configure"].variables["slurm_nodes"][0]
    return node


@pytest.mark.parametrize("machine", ["hgx-h100-8", "dgx-h100"])
def test_the_pools_processors_and_memory_go_to_slurm(machine: str) -> None:
    node = _node(machine, WRITTEN)
    assert (node["sockets"], node["cores"], node["threads"]) == (2, 48, 2)
    assert node["memory_mib"] == int(1024 * 1024 * 0.95)


def test_without_them_the_catalogs_hold() -> None:
    machine = load_catalog().machines["dgx-h100"]
    assert machine.cpu is not None
    assert _node("dgx-h100")["cores"] == machine.cpu.cores


def test_a_pools_words_leave_the_catalog_as_it_is() -> None:
    _node("dgx-h100", WRITTEN)
    machine = load_catalog().machines["dgx-h100"]
    assert machine.cpu is not None
    assert machine.cpu.cores != 48
