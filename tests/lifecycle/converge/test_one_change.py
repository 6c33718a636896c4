"""A change of the spec runs the steps of its own role on its own nodes, and nothing else."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gcluster.inventory.compile import CompiledCluster, compile_cluster
from gcluster.inventory.hosts import ClusterInventory
from gcluster.lifecycle.cluster.open_site import inventory
from gcluster.lifecycle.nodes.converge.pending import pending_steps, step_digests
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.spec import ClusterSpec
from gcluster.stacks.registry import provider

SERVERS: dict[str, Any] = {
    "apiVersion": "gcluster/v1",
    "name": "campus",
    "sites": {"room": {"provider": "bare-metal", "ssh": {"user": "root"}}},
    "pools": {
        "head": {"site": "room", "role": "controller", "hosts": "head01"},
        "train": {"site": "room", "machine": "hgx-h100-8", "hosts": "gpu[01-03]"},
        "debug": {"site": "room", "machine": "hgx-h100-8", "hosts": "dbg01"},
    },
    "software": {"driver": "595.58.03", "distribution": "debian-13"},
    "scheduler": {"type": "slurm"},
}
EVERYWHERE = {"head01", "gpu01", "gpu02", "gpu03", "dbg01"}
TRAIN = {"gpu01", "gpu02", "gpu03"}


@pytest.mark.parametrize(
    ("path", "value", "roles", "hosts"),
    [
        (("software", "driver"), "595.112.07", {"nvidia_driver"}, TRAIN | {"dbg01"}),
        (("pools", "train", "gpus"), {"mig": "enabled"}, {"nvidia_driver"}, TRAIN),
        (("pools", "train", "boot"), {"parameters": ["pci=realloc"]}, {"kernel"}, TRAIN),
        (("users",), [{"name": "ada", "uid": 2001}], {"base"}, EVERYWHERE),
        (
            ("scheduler", "partitions"),
            {"all": {"pools": ["train", "debug"]}},
            {"slurm"},
            {"head01"},
        ),
    ],
    ids=["driver", "one pool's GPUs", "one pool's kernel", "a user", "a partition"],
)
def test_a_change_runs_its_role_on_its_nodes_alone(
    path: tuple[str, ...], value: object, roles: set[str], hosts: set[str]
) -> None:
    stamps = _stamps(_compiled(SERVERS))
    pending = pending_steps(_compiled(_changed(SERVERS, path, value)), stamps, {})
    assert {item.step.role for item in pending.steps} == roles
    assert set(pending.by_host()) == hosts


def test_the_same_spec_runs_nothing() -> None:
    compiled = _compiled(SERVERS)
    assert pending_steps(compiled, _stamps(compiled), {}).total == 0


def _compiled(written: dict[str, Any]) -> CompiledCluster:
    spec = msgspec.convert(written, ClusterSpec)
    hosts = provider("bare-metal", None).planned_hosts(spec, "room")
    nodes: ClusterInventory = inventory(spec, hosts)
    return compile_cluster(spec, nodes, load_catalog())


def _stamps(compiled: CompiledCluster) -> dict[str, dict[str, str]]:
    """Return the stamps of nodes on which everything has run."""
    return {
        host: {step.key: digest for step, digest in step_digests(group, {})}
        for group in compiled.groups
        for host in group.hosts
    }


def _changed(written: dict[str, Any], path: tuple[str, ...], value: object) -> dict[str, Any]:
    first, *rest = path
    below = written.get(first, {})
    return written | {first: _changed(below, tuple(rest), value) if rest else value}
