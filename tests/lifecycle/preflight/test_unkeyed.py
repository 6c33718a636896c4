"""No cluster is made whose nodes would take packages from a repository without a known key."""

from __future__ import annotations

import pytest

from gcluster.inventory.compile import CompiledCluster, Group, Step
from gcluster.inventory.compile.steps import Stage
from gcluster.lifecycle.cluster.outcome import Exit, LifecycleError
from gcluster.lifecycle.planning.preflight.obstacles import refuse_unsigned


def _cluster(fingerprint: str) -> CompiledCluster:
    repository = {"name": "doca", "key_fingerprint": fingerprint}
    step = Step(
        stage=Stage.BASE,
        role="package_sources",
        phase="install",
        variables={"package_sources_repositories": [repository]},
    )
    pools = tuple(Group(name=name, hosts=(), steps=(step,)) for name in ("debug", "train"))
    return CompiledCluster(cluster="demo", groups=pools)


def test_a_source_without_a_fingerprint_is_refused_with_what_to_write() -> None:
    with pytest.raises(LifecycleError) as error:
        refuse_unsigned(_cluster(""))

    (found,) = error.value.diagnostics
    assert error.value.exit_code == Exit.REFUSED
    assert found.code == "GC936"
    assert "pool debug (and 1 more)" in found.summary
    assert "software.sources.doca.key_fingerprint" in found.hint


def test_a_source_with_a_fingerprint_passes() -> None:
    refuse_unsigned(_cluster("0" * 40))


def test_an_image_without_a_digest_is_refused_before_anything_is_made() -> None:
    image = "us-docker.pkg.dev/gce-ai-infra/asapd-lite/asapd-lite:v0.0.8"
    step = Step(
        stage=Stage.FABRIC,
        role="gib",
        phase="configure",
        variables={"gib_daemon": image, "gib_daemon_digest": ""},
    )
    cluster = CompiledCluster(
        cluster="demo", groups=(Group(name="train", hosts=(), steps=(step,)),)
    )
    with pytest.raises(LifecycleError) as error:
        refuse_unsigned(cluster)
    (found,) = error.value.diagnostics
    assert (found.code, error.value.exit_code) == ("GC936", Exit.REFUSED)
    assert image in found.summary
    assert found.hint.endswith("asapd-lite/asapd-lite:v0.0.8")
