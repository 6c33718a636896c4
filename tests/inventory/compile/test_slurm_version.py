"""Another version of Slurm reaches slurmdbd's host, then controllers, then drained nodes."""

from __future__ import annotations

from gcluster.inventory.compile import CompiledCluster, compile_cluster
from gcluster.inventory.hosts import ClusterInventory, Host, SshTarget
from gcluster.lifecycle.nodes.converge.pending import pending_steps
from gcluster.lifecycle.operations.rolling.change import must_roll
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load_text
from gcluster.schemas.spec import PoolRole

SPEC = """\
apiVersion: gcluster/v1
name: demo
sites: {here: {provider: local}}
pools:
  books: {site: here, role: login}
  gpu: {site: here, machine: sim.h100x8, count: 2}
  head: {site: here, role: controller}
scheduler: {type: slurm, accounting: {pool: books}}
"""
HOSTS: dict[str, PoolRole] = {
    "books": "login",
    "gpu1": "compute",
    "gpu2": "compute",
    "head": "controller",
}


def compiled(version: str) -> CompiledCluster:
    """Return the cluster with Slurm in a version."""
    spec = load_text(f"{SPEC}software: {{slurm: '{version}'}}\n").spec
    assert spec is not None
    hosts = tuple(
        Host(
            name=name,
            site="here",
            pool=name.rstrip("12"),
            role=role,
            machine="sim.h100x8" if role == "compute" else None,
            address="10.0.0.1",
            ssh=SshTarget(user="ops"),
        )
        for name, role in HOSTS.items()
    )
    return compile_cluster(spec, ClusterInventory(cluster="demo", hosts=hosts), load_catalog())


def stamps_of(cluster: CompiledCluster) -> dict[str, dict[str, str]]:
    """Return the stamps of hosts on which all has run."""
    found: dict[str, dict[str, str]] = {}
    for pending in pending_steps(cluster, {}, {}).steps:
        for host in pending.hosts:
            found.setdefault(host, {})[pending.step.key] = pending.digest
    return found


def test_it_comes_to_slurmdbd_then_to_controllers_and_last_to_drained_nodes() -> None:
    before = stamps_of(compiled("auto"))
    pending = pending_steps(compiled("24.11.5"), before, {})
    order = [(item.step.key, tuple(item.hosts)) for item in pending.steps]
    assert order[0] == ("slurmdbd.install", ("books",))
    installs = [hosts for step, hosts in order if step == "slurm.install"]
    assert installs[0] == ("head",)
    assert {step for step, _ in order} == {
        f"{role}.{phase}" for role in ("slurm", "slurmdbd") for phase in ("install", "verify")
    }
    # `converge` works on them when all others are done.
    assert must_roll(pending, frozenset(HOSTS)) == {"gpu1", "gpu2"}


def test_no_node_is_drained_for_the_version_that_is_there() -> None:
    steps = [step for group in compiled("auto").groups for step in group.steps]
    assert [s.variables for s in steps if s.key == "slurm.install"] == [{}] * 3
    assert not any(s.needs_drain for s in steps if s.role in {"slurm", "slurmdbd"})
