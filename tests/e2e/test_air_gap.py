"""A cluster whose nodes reach nothing beyond this machine, brought up from a bundle alone.

The bundle is made of the distribution's own mirror. The tests run in order and share one cluster.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import LiveCluster, made_bundle

pytestmark = [pytest.mark.local, pytest.mark.bundle]

SPEC = """\
apiVersion: gcluster/v1
name: {name}
sites: {{here: {{provider: local, network: {{internal: true}}}}}}
pools:
  head: {{site: here, role: controller}}
  gpu: {{site: here, machine: sim.h100x8, count: 2}}
scheduler: {{type: slurm}}
smoke: {{allreduce: {{sizes: 8B..64KiB, iterations: 1}}}}
"""


@pytest.fixture(scope="module")
def site(live: LiveCluster) -> LiveCluster:
    """The spec of a site without a network."""
    live.spec.write_text(SPEC.format(name=live.name))
    return live


@pytest.fixture(scope="module")
def bundle(site: LiveCluster) -> Path:
    """A bundle of all that the spec needs."""
    return made_bundle(site)


def refused(site: LiveCluster, folder: Path, code: str, *options: str) -> str:
    """Return what `up` says of a bundle that it refuses, having made nothing."""
    done = site.gcluster("up", str(site.spec), "--yes", "--bundle", str(folder), *options, expect=4)
    assert site.engine("ps", "--all") == []
    assert f"error[{code}]" in done.stdout + done.stderr
    return done.stdout + done.stderr


def test_a_second_run_fetches_nothing_and_writes_the_same_manifest(
    site: LiveCluster, bundle: Path
) -> None:
    before = (bundle / "manifest.json").read_bytes()
    made = site.json("bundle", str(site.spec), "--out", str(bundle))
    assert made["fetched"] == 0
    assert (bundle / "manifest.json").read_bytes() == before


def test_a_corrupt_file_is_named_and_nothing_is_made(site: LiveCluster, copy: Path) -> None:
    package = next(copy.glob("apt/*/pool/slurmd_*.deb"))
    package.write_bytes(package.read_bytes()[:-1] + b"x")
    assert package.name in refused(site, copy, "GC938")


def test_a_missing_file_is_named_and_nothing_is_made(site: LiveCluster, copy: Path) -> None:
    package = next(copy.glob("apt/*/pool/munge_*.deb"))
    package.unlink()
    assert package.name in refused(site, copy, "GC938")


def test_another_key_is_refused_and_nothing_is_made(site: LiveCluster, bundle: Path) -> None:
    assert "0" * 40 in refused(site, bundle, "GC956", "--bundle-key", "0" * 40)


def test_the_cluster_comes_up_from_the_bundle_to_a_passed_allreduce(
    site: LiveCluster, bundle: Path
) -> None:
    fingerprint = json.loads((bundle / "manifest.json").read_bytes())["key_fingerprint"]
    options = ("--bundle", str(bundle), "--bundle-key", fingerprint)
    result = site.json("up", str(site.spec), "--yes", *options)
    assert result["verdict"]["verdict"] == "pass"
    assert result["failed_hosts"] == {}


def test_no_node_reaches_a_mirror_or_has_another_source(site: LiveCluster) -> None:
    for node in ("head", "gpu001"):
        reach = "timeout 5 bash -c '</dev/tcp/151.101.2.132/80' 2>/dev/null && echo yes || echo no"
        assert site.on(node, reach).strip() == "no"
        used = "apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | sort -u"
        (source,) = site.on(node, used).split()
        assert "/bundle/apt/" in source


def test_a_second_up_changes_nothing(site: LiveCluster, bundle: Path) -> None:
    assert site.json("up", str(site.spec), "--yes", "--bundle", str(bundle))["changed"] is False
    assert site.json("up", str(site.spec), "--yes")["changed"] is False
