"""A cluster on a bundle: the controller reads its disk, the others fetch from it alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from gcluster.inventory.compile import CompiledCluster, compile_cluster
from gcluster.lifecycle.cluster.open_site import inventory
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load
from gcluster.schemas.stack.bundle import BundledRepository, BundleManifest
from gcluster.stacks.registry import provider

CATALOG = load_catalog()
EXAMPLE = Path(__file__).parents[3] / "examples/bare-metal.yaml"
BUNDLE = BundleManifest(
    cluster="demo",
    key_fingerprint="A" * 40,
    key="-----BEGIN PGP PUBLIC KEY BLOCK-----",
    repositories=(
        BundledRepository(
            distribution="debian-13",
            path="apt/debian-13",
            index_sha256="0" * 64,
            resolved_from={},
            requested=(),
            packages=(),
        ),
    ),
)


@pytest.fixture(scope="module")
def compiled() -> CompiledCluster:
    """Return the bare-metal example, on a bundle."""
    spec = load(EXAMPLE).spec
    assert spec is not None
    hosts = [
        host
        for name, site in spec.sites.items()
        for host in provider(site.provider, CATALOG).planned_hosts(spec, name)
    ]
    return compile_cluster(spec, inventory(spec, hosts), CATALOG, BUNDLE)


def test_only_the_controllers_have_a_package_mirror_and_it_comes_before_everything(
    compiled: CompiledCluster,
) -> None:
    first, *others = compiled.groups
    assert first.steps[0].key == "package_mirror.install"
    assert all(step.role != "package_mirror" for group in others for step in group.steps)


def test_every_node_has_the_bundle_as_its_one_source_before_any_other_role(
    compiled: CompiledCluster,
) -> None:
    roots = {}
    for group in compiled.groups:
        steps = [step for step in group.steps if step.role != "package_mirror"]
        assert steps[0].key == "package_sources.install"
        assert [s.key for s in steps].count("package_sources.install") == 1
        assert steps[0].variables["package_sources_only"] is True
        (repository,) = steps[0].variables["package_sources_repositories"]
        assert repository["key_fingerprint"] == "A" * 40
        roots[group.name] = repository["url"].split("/bundle/")[0]
    controller, *others = roots.values()
    assert controller == "file:///srv/gcluster/package-mirror"
    assert all(url.startswith("http://") and url.endswith(":8480") for url in others)
