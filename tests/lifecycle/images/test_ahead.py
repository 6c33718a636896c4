"""`gcluster image`: what is baked, what is written for other builders, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from gcluster.inventory.compile import compile_cluster
from gcluster.inventory.hosts import ClusterInventory
from gcluster.lifecycle.cluster.cluster import open_cluster
from gcluster.lifecycle.cluster.outcome import Exit, LifecycleError
from gcluster.lifecycle.cluster.progress import silent
from gcluster.lifecycle.cluster.sites import open_sites
from gcluster.lifecycle.nodes.converge.pending import step_digests
from gcluster.lifecycle.nodes.images.ahead import make_images
from gcluster.lifecycle.nodes.images.golden import BAKED_PHASES, is_baked

SERVERS = """\
apiVersion: gcluster/v1
name: campus
sites: {room: {provider: bare-metal, ssh: {user: root}}}
pools:
  head: {site: room, role: controller, hosts: head01}
  train: {site: room, machine: hgx-h100-8, hosts: "gpu[01-02]"}
software: {driver: "595.58.03"}
scheduler: {type: slurm}
"""


@pytest.fixture
def servers(own_places: Path) -> Path:
    """Return the spec of machines that exist."""
    path = own_places / "cluster.yaml"
    path.write_text(SERVERS, encoding="utf-8")
    return path


def test_machines_that_exist_are_refused_and_the_way_to_a_playbook_is_named(servers: Path) -> None:
    with pytest.raises(LifecycleError) as refused:
        make_images(open_cluster(str(servers)), silent)
    (message,) = refused.value.diagnostics
    assert (refused.value.exit_code, message.code) == (Exit.REFUSED, "GC917")
    assert "--out" in (message.hint or "")


def test_a_pools_playbook_installs_what_its_machines_need_and_starts_nothing(
    servers: Path, tmp_path: Path
) -> None:
    written = make_images(open_cluster(str(servers)), silent, out=tmp_path).playbooks
    assert set(written) == {"head", "train"}
    roles = {pool: _roles(Path(path)) for pool, path in written.items()}
    assert "nvidia_driver" in roles["train"] - roles["head"]
    steps = {
        task["name"]
        for play in yaml.safe_load(Path(written["train"]).read_text(encoding="utf-8"))
        for task in play["tasks"]
        if "ansible.builtin.import_role" in task
    }
    assert {step.split(".")[1] for step in steps} == BAKED_PHASES


def test_the_playbook_leaves_the_stamps_that_up_queries_of_the_pools_nodes(
    servers: Path, tmp_path: Path
) -> None:
    cluster = open_cluster(str(servers))
    written = make_images(cluster, silent, out=tmp_path).playbooks
    text = Path(written["train"]).read_text(encoding="utf-8")
    (site,) = open_sites(cluster)
    hosts = site.provider.planned_hosts(cluster.spec, site.name)
    nodes = ClusterInventory(cluster=cluster.name, hosts=hosts)
    compiled = compile_cluster(cluster.spec, nodes, cluster.catalog)
    train = next(group for group in compiled.groups if group.name == "train")
    wanted = {digest for step, digest in step_digests(train, {}) if is_baked(step)}
    assert {digest for digest in wanted if digest not in text} == set()


def test_nothing_is_written_into_the_state_by_playbooks_alone(
    servers: Path, tmp_path: Path
) -> None:
    make_images(open_cluster(str(servers)), silent, out=tmp_path)
    assert not (servers.parent / ".gcluster").exists()


def _roles(path: Path) -> set[str]:
    plays = yaml.safe_load(path.read_text(encoding="utf-8"))
    return {
        task["ansible.builtin.import_role"]["name"].rpartition(".")[2]
        for play in plays
        for task in play["tasks"]
        if "ansible.builtin.import_role" in task
    }
