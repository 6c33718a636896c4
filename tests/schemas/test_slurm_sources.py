"""Which Slurm nodes get: the distribution's package where it is that, else one that is built."""

from __future__ import annotations

import pytest

from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load_text
from gcluster.schemas.spec import ClusterSoftware
from gcluster.schemas.spec.software import SourceRedirect
from gcluster.schemas.stack import load_lock, resolved_pools
from gcluster.schemas.stack.lock import older
from gcluster.schemas.stack.slurm import slurm_sources, source_of

LOCK = load_lock()
CATALOG = load_catalog()
KNOWN = slurm_sources(CATALOG.sources, ClusterSoftware())
SPEC = """\
apiVersion: gcluster/v1
name: demo
sites: {{room: {{provider: {provider}}}}}
pools:
  head: {{site: room, role: controller{hosts[0]}}}
  gpu: {{site: room, machine: {machine}{hosts[1]}}}
scheduler: {{type: slurm}}
software: {{{software}}}
"""
BARE = {
    "provider": "bare-metal, ssh: {user: ops}",
    "machine": "hgx-h100-8, fabric: infiniband-ndr",
    "hosts": (", hosts: head01", ", hosts: gpu01, cpu: {sockets: 2, cores: 56}, memory: 2000 GiB"),
}
LOCAL = {"provider": "local", "machine": "sim.h100x8", "hosts": ("", ", count: 2")}


def slurm_of(software: str, *, local: bool = False) -> dict[str, tuple[str, str]]:
    """Return pool -> version of its Slurm and how it is installed."""
    loaded = load_text(SPEC.format(**(LOCAL if local else BARE), software=software))
    assert loaded.spec is not None, [d.summary for d in loaded.diagnostics]
    return {
        name: (component.version, component.install)
        for name, resolved in resolved_pools(loaded.spec, CATALOG).items()
        for component in resolved.components
        if component.key == "slurm"
    }


@pytest.mark.parametrize(
    "version",
    sorted({s.versions["slurm"] for s in LOCK.sets if "slurm" in s.versions}),
)
def test_every_slurm_of_a_tested_set_can_be_had(version: str) -> None:
    packages = {package.version for package in LOCK.slurm_packages}
    assert version in packages or source_of(version, KNOWN) is not None


def test_the_default_release_can_be_built_and_is_newer_than_any_distribution_s() -> None:
    assert LOCK.slurm_default is not None
    source = source_of(LOCK.slurm_default.version, KNOWN)
    assert source is not None
    assert source.artefact == "slurm"
    newer = [p.version for p in LOCK.slurm_packages if not older(p.version, source.version)]
    assert newer == []


def test_machines_get_one_current_release_whatever_their_distribution() -> None:
    assert slurm_of("distribution: ubuntu-22.04") == {
        "head": ("25.11.8", "built"),
        "gpu": ("25.11.8", "built"),
    }


def test_local_nodes_keep_the_distribution_s_unless_another_is_written() -> None:
    assert slurm_of("", local=True)["gpu"] == ("24.11.5", "distribution")
    assert slurm_of('slurm: "24.11"', local=True)["gpu"] == ("24.11.5", "distribution")
    assert slurm_of('slurm: "25.11"', local=True)["gpu"] == ("25.11.8", "built")


def test_the_distribution_s_package_is_taken_where_it_is_the_very_version() -> None:
    assert slurm_of('distribution: ubuntu-24.04, slurm: "23.11.4"')["gpu"] == (
        "23.11.4",
        "distribution",
    )
    assert slurm_of('distribution: ubuntu-24.04, slurm: "23.11.11"')["gpu"] == (
        "23.11.11",
        "built",
    )


def test_the_word_distribution_takes_whatever_that_has() -> None:
    assert slurm_of("distribution: el-9, slurm: distribution")["gpu"] == ("22.05.9", "distribution")
    assert slurm_of("slurm: distribution")["gpu"] == ("", "distribution")


def test_the_beginning_of_a_version_is_the_newest_release_with_a_known_checksum() -> None:
    redirect = SourceRedirect(checksums={"slurm-25.11.10.tar.bz2": f"sha256:{'0' * 64}"})
    software = ClusterSoftware(sources={"slurm": redirect})
    source = source_of("25.11", slurm_sources(CATALOG.sources, software))
    assert source is not None
    assert (source.version, source.path) == ("25.11.10", "slurm-25.11.10.tar.bz2")
    assert source_of("25.11.10", KNOWN) is None
