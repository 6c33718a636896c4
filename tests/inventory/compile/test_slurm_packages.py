"""What nodes are configured with where the cluster builds its own Slurm."""

from __future__ import annotations

from gcluster.inventory.compile import CompiledCluster, Step, compile_cluster
from gcluster.inventory.hosts import ClusterInventory, Host, SshTarget
from gcluster.lifecycle.nodes.images.golden import is_baked
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load_text

SPEC = """\
apiVersion: gcluster/v1
name: demo
sites: {here: {provider: local}}
pools:
  head: {site: here, role: controller}
  gpu: {site: here, machine: sim.h100x8, count: 1}
  old: {site: here, machine: sim.h100x8, count: 1%s}
scheduler: {type: slurm, accounting: {}}
software: {slurm: "%s"}
"""


def compiled(version: str, old: str = "") -> CompiledCluster:
    """Return a cluster whose pools get a Slurm, and pool `old` maybe another."""
    own = f', software: {{slurm: "{old}"}}' if old else ""
    loaded = load_text(SPEC % (own, version))
    assert loaded.spec is not None, [d.summary for d in loaded.diagnostics]
    hosts = tuple(
        Host(
            name=name,
            site="here",
            pool=name,
            role="controller" if name == "head" else "compute",
            machine=None if name == "head" else "sim.h100x8",
            address="10.0.0.1",
            ssh=SshTarget(user="ops"),
        )
        for name in ("head", "gpu", "old")
    )
    inventory = ClusterInventory(cluster="demo", hosts=hosts)
    return compile_cluster(loaded.spec, inventory, load_catalog())


def step_of(cluster: CompiledCluster, pool: str, key: str) -> Step:
    """Return a step of a pool."""
    return next(s for g in cluster.groups if g.name == pool for s in g.steps if s.key == key)


def keys(cluster: CompiledCluster) -> set[str]:
    """Return the keys of all steps."""
    return {step.key for group in cluster.groups for step in group.steps}


def test_packages_that_are_built_come_from_the_controllers_before_any_part_is_installed() -> None:
    cluster = compiled("25.11.8")
    gpu = step_of(cluster, "gpu", "slurm_packages.install").variables
    assert gpu == {
        "slurm_packages_version": "25.11.8",
        "slurm_packages_mirror": "http://10.0.0.1:8480/slurm/25.11.8-34ace13f8101-1",
    }
    head = step_of(cluster, "head", "slurm_packages.install").variables
    assert head["slurm_packages_mirror"].startswith("file:///srv/gcluster/package-mirror/slurm/")
    order = [step.key for step in cluster.groups[0].steps]
    assert order.index("package_mirror.verify") < order.index("slurm_packages.install")
    assert order.index("munge.configure") < order.index("slurm_packages.install")
    assert order.index("slurm_packages.install") < order.index("slurmdbd.install")
    installs = (
        step_of(cluster, "head", "slurmdbd.install"),
        step_of(cluster, "gpu", "slurm.install"),
    )
    assert [step.variables for step in installs] == [
        {"slurmdbd_version": "25.11.8", "slurmdbd_built": True},
        {"slurm_version": "25.11.8", "slurm_built": True},
    ]


def test_nothing_of_it_is_baked_into_an_image() -> None:
    cluster = compiled("25.11.8")
    baked = {step.key for group in cluster.groups for step in group.steps if is_baked(step)}
    assert not {"slurm_packages.install", "slurm.install", "slurmdbd.install"} & baked
    assert "munge.install" in baked


def test_the_distribution_s_own_package_needs_no_mirror() -> None:
    cluster = compiled("24.11")
    assert not {"slurm_packages.install", "package_mirror.install"} & keys(cluster)
    assert step_of(cluster, "gpu", "slurm.install").variables == {"slurm_version": "24.11"}


def test_a_pool_gets_the_older_slurm_that_it_requests() -> None:
    cluster = compiled("25.11.8", old="25.05")
    old = step_of(cluster, "old", "slurm_packages.install").variables
    assert old["slurm_packages_version"] == "25.05.8"
    assert step_of(cluster, "old", "slurm.install").variables["slurm_version"] == "25.05.8"
    assert step_of(cluster, "gpu", "slurm.install").variables["slurm_version"] == "25.11.8"


def test_a_pool_may_keep_the_distribution_s_with_a_newer_controller() -> None:
    cluster = compiled("25.11.8", old="distribution")
    assert step_of(cluster, "old", "slurm.install").variables == {}
    assert "slurm_packages" not in {
        step.role for group in cluster.groups if group.name == "old" for step in group.steps
    }
