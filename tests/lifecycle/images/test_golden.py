"""The golden image is known by what is in it, and one is baked only once at a time."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest
from tests.lifecycle.controller import HEAD
from tests.lifecycle.sample_cluster import SampleCluster

from gcluster.inventory.compile import CompiledCluster, compile_cluster
from gcluster.inventory.hosts import ClusterInventory, Host
from gcluster.lifecycle.cluster.cluster import open_cluster
from gcluster.lifecycle.cluster.open_site import OpenSite
from gcluster.lifecycle.cluster.progress import silent
from gcluster.lifecycle.cluster.sites import open_sites
from gcluster.lifecycle.nodes.converge import role_files
from gcluster.lifecycle.nodes.converge.pending import step_digests
from gcluster.lifecycle.nodes.images import golden
from gcluster.lifecycle.nodes.images.golden import (
    BAKED_PHASES,
    baker,
    compile_for_images,
    elastic_sites,
    ensure_image,
    image_key,
    install_group,
)
from gcluster.schemas.catalog import load_catalog
from gcluster.stacks.local.provider import LocalProvider
from gcluster.stacks.provider import SiteContext

SPEC = """\
apiVersion: gcluster/v1
name: {name}
sites: {{here: {{provider: local}}}}
pools:
  head: {{site: here, role: controller}}
  gpu: {{site: here, machine: sim.h100x8, count: {count}}}
scheduler: {{type: slurm}}
{users}"""
ELASTIC = """\
apiVersion: gcluster/v1
name: demo
sites: {here: {provider: local}, away: {provider: local}}
pools:
  head: {site: here, role: controller}
  gpu: {site: here, machine: sim.h100x8, count: 1}
  spill: {site: away, machine: sim.h100x8, count: {min: 0, max: 2}}
scheduler:
  type: slurm
  partitions: {train: {pools: [gpu], default: true, spill: {to: spill, after: 1m}}}
"""


def _opened(
    folder: Path, name: str = "demo", count: int = 2, users: str = ""
) -> tuple[OpenSite, CompiledCluster]:
    path = folder / "cluster.yaml"
    path.write_text(SPEC.format(name=name, count=count, users=users), encoding="utf-8")
    (site,) = open_sites(open_cluster(str(path)))
    spec = site.context.spec
    hosts = site.provider.planned_hosts(spec, site.name)
    inventory = ClusterInventory(cluster=spec.name, hosts=hosts)
    return site, compile_cluster(spec, inventory, load_catalog())


def _key(folder: Path, base: str = "base", name: str = "demo", **change: object) -> str:
    site, compiled = _opened(folder, name, **change)  # type: ignore[arg-type]  # count or users
    group = install_group(compiled, site)
    assert group is not None
    return image_key(base, group)


@pytest.fixture
def roles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give a copy of the roles that can be edited."""
    copy = tmp_path / "roles"
    shutil.copytree(role_files.role_path("base").parent, copy)
    monkeypatch.setattr(role_files, "role_path", lambda role: copy / role)
    role_files.role_digest.cache_clear()
    role_files.files_of.cache_clear()
    yield copy
    role_files.role_digest.cache_clear()
    role_files.files_of.cache_clear()


def test_another_base_is_another_image(own_places: Path) -> None:
    assert _key(own_places, "base") != _key(own_places, "other base")


@pytest.mark.parametrize(
    "change",
    [
        {"name": "other"},
        {"count": 4},
        {"users": "users: [{name: ada, uid: 2001}]\n"},
    ],
    ids=["name", "nodes", "users"],
)
def test_what_is_not_installed_does_not_change_the_image(
    own_places: Path, change: dict[str, object]
) -> None:
    assert _key(own_places, **change) == _key(own_places)  # type: ignore[arg-type]  # as above


def test_an_install_step_that_changed_is_another_image(own_places: Path, roles: Path) -> None:
    before = _key(own_places)
    with (roles / "slurm" / "tasks" / "install.yml").open("a", encoding="utf-8") as file:
        file.write("# one more line\n")
    role_files.role_digest.cache_clear()
    role_files.files_of.cache_clear()
    assert _key(own_places) != before


def test_a_later_step_that_changed_is_the_same_image(own_places: Path, roles: Path) -> None:
    before = _key(own_places)
    with (roles / "slurm" / "tasks" / "configure.yml").open("a", encoding="utf-8") as file:
        file.write("# one more line\n")
    role_files.role_digest.cache_clear()
    role_files.files_of.cache_clear()
    assert _key(own_places) == before


def test_a_node_of_any_pool_finds_the_stamps_of_its_install_steps_in_the_image(
    own_places: Path,
) -> None:
    site, compiled = _opened(own_places)
    group = install_group(compiled, site)
    assert group is not None
    baked = {step.key: digest for step, digest in step_digests(group, {})}
    for pool in compiled.groups:
        wanted = {s.key: d for s, d in step_digests(pool, {}) if s.phase in BAKED_PHASES}
        assert wanted.items() <= baked.items()


def test_every_step_is_baked_once(own_places: Path) -> None:
    site, compiled = _opened(own_places)
    group = install_group(compiled, site)
    assert group is not None
    keys = [step.key for step in group.steps]
    assert len(keys) == len(set(keys))
    assert {step.phase for step in group.steps} <= BAKED_PHASES


def test_what_no_compute_node_needs_is_in_no_image(own_places: Path) -> None:
    """A database's package starts it wherever it is installed; and the image fits more specs."""
    site, compiled = _opened(own_places, users="users: [{name: ada, uid: 2001}]\n")
    plain = install_group(compiled, site)
    text = (own_places / "cluster.yaml").read_text(encoding="utf-8")
    with_accounts = text.replace("{type: slurm}", "{type: slurm, accounting: {}}")
    (own_places / "cluster.yaml").write_text(with_accounts, encoding="utf-8")
    (site,) = open_sites(open_cluster(str(own_places / "cluster.yaml")))
    spec = site.context.spec
    hosts = site.provider.planned_hosts(spec, site.name)
    compiled = compile_cluster(
        spec, ClusterInventory(cluster=spec.name, hosts=hosts), load_catalog()
    )
    assert "slurmdbd.install" in {step.key for group in compiled.groups for step in group.steps}
    assert install_group(compiled, site) == plain


def test_a_site_whose_nodes_all_come_and_go_has_an_image_too(own_places: Path) -> None:
    path = own_places / "cluster.yaml"
    path.write_text(ELASTIC, encoding="utf-8")
    cluster = open_cluster(str(path))
    sites = open_sites(cluster)
    planned = [h for s in sites for h in s.provider.planned_hosts(cluster.spec, s.name)]
    (away,) = (site for site in sites if site.name == "away")

    group = install_group(compile_for_images(cluster, planned), away)

    assert elastic_sites(cluster.spec) == {"away"}
    assert group is not None
    assert "slurm.install" in {step.key for step in group.steps}


def test_simulated_nodes_boot_from_no_image(sample: SampleCluster) -> None:
    (site,) = open_sites(sample.open())
    assert baker(site) is None


class Kiln(LocalProvider):
    """The double of a provider that bakes: images are names in a list."""

    def __init__(self) -> None:
        """Begin with no image."""
        self.images: list[str] = []
        self.started = 0
        self.discarded = 0
        self.first_look: Callable[[], object] = lambda: None
        """Called by each thread when it looks for an image for the first time."""
        self._looked = threading.local()

    def has_image(self, context: SiteContext, key: str) -> bool:
        """Look into the list."""
        del context
        there = key in self.images
        if not hasattr(self._looked, "once"):
            self._looked.once = True
            self.first_look()
        return there

    def start_builder(self, context: SiteContext, key: str) -> Host:
        """Count; take long enough for another thread to come in where none is kept out."""
        del context, key
        self.started += 1
        time.sleep(0.05)
        return HEAD

    def commit_builder(self, context: SiteContext, key: str) -> None:
        """Add to the list."""
        del context
        self.images.append(key)

    def discard_builder(self, context: SiteContext, key: str) -> None:
        """Count."""
        del context, key
        self.discarded += 1


@pytest.fixture
def kiln(monkeypatch: pytest.MonkeyPatch) -> Kiln:
    """Give a provider whose builder is no machine: nothing is installed on it."""
    monkeypatch.setattr(golden, "_install", lambda *_: None)
    return Kiln()


def test_two_commands_that_need_the_same_image_bake_it_once(own_places: Path, kiln: Kiln) -> None:
    site, compiled = _opened(own_places)
    site = msgspec.structs.replace(site, provider=kiln)
    kiln.first_look = threading.Barrier(4).wait  # all four see that it is missing
    with ThreadPoolExecutor(4) as pool:
        keys = list(
            pool.map(lambda n: ensure_image(site, compiled, own_places / str(n), silent), range(4))
        )
    assert kiln.started == 1
    assert set(keys) == set(kiln.images)


def test_an_image_that_exists_is_not_baked_again(own_places: Path, kiln: Kiln) -> None:
    site, compiled = _opened(own_places)
    site = msgspec.structs.replace(site, provider=kiln)
    first, second = (ensure_image(site, compiled, own_places, silent) for _ in range(2))
    assert first == second
    assert kiln.started == 1


def test_an_install_that_fails_leaves_no_image_and_no_builder(
    own_places: Path, kiln: Kiln, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(golden, "_install", fail)
    site, compiled = _opened(own_places)
    site = msgspec.structs.replace(site, provider=kiln)
    with pytest.raises(KeyboardInterrupt):
        ensure_image(site, compiled, own_places, silent)
    assert (kiln.images, kiln.discarded) == ([], 1)
