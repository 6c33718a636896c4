"""Local nodes take this machine's own build: looked for by every verb, built by `up` alone."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from gcluster.lifecycle.cluster.cluster import Cluster, open_cluster
from gcluster.lifecycle.cluster.outcome import Exit, LifecycleError
from gcluster.lifecycle.cluster.progress import silent
from gcluster.lifecycle.kubernetes.release import build, source
from gcluster.lifecycle.kubernetes.release.source import (
    describe_source,
    ready_kubernetes,
    takes_own_build,
)
from gcluster.lifecycle.planning.plan import make_plan
from gcluster.schemas.load import load
from gcluster.schemas.stack.bundle import IMAGES
from gcluster.stacks.provider import provider_error

from .spec import TEXT, spec_of


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    """Return the trial cluster on simulated nodes, which need no container engine."""
    path = tmp_path / "cluster.yaml"
    path.write_text(TEXT.replace("provider: local", "provider: simulated"), encoding="utf-8")
    return open_cluster(str(path))


def test_a_planned_bundle_is_the_built_one_but_for_sizes_and_sums(compiled: list[str]) -> None:
    planned = build.planned_bundle()
    assert compiled == []
    _, manifest = build.ensure_built(silent)
    unknown = msgspec.structs.replace(
        manifest,
        files=tuple(msgspec.structs.replace(f, size=0, sha256="") for f in manifest.files),
        images=tuple(msgspec.structs.replace(i, digest="") for i in manifest.images),
    )
    assert planned == unknown


def test_a_plan_builds_nothing_and_reports_that_up_would(
    compiled: list[str], cluster: Cluster
) -> None:
    plan = make_plan(cluster)
    assert "to be fetched, or built where it can't be reached, first" in plan.kubernetes
    assert "make bundle-kubernetes" in plan.kubernetes
    assert not plan.is_empty
    assert compiled == []


def test_a_plan_reports_where_the_bundle_is(compiled: list[str], cluster: Cluster) -> None:
    build.ensure_built(silent)
    compiled.clear()
    assert cluster.kubernetes is not None
    assert str(build.built_folder()) in describe_source(cluster.kubernetes)
    assert compiled == []


def test_up_builds_it_and_checks_every_file(compiled: list[str]) -> None:
    at = ready_kubernetes(silent)
    assert {"kube", "base image"} <= {*compiled}
    assert at.root == f"file:///srv/gcluster/kubernetes/{at.manifest.key}"
    assert all(file.sha256 for file in at.manifest.files)


def test_up_builds_what_is_built_no_second_time(compiled: list[str]) -> None:
    ready_kubernetes(silent)
    compiled.clear()
    ready_kubernetes(silent)
    assert compiled == []


def test_nodes_without_an_image_are_reported_by_the_step_that_needs_it(
    compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        raise provider_error("GC912", "no container engine")

    monkeypatch.setattr(source, "find_engine", refuse)
    assert ready_kubernetes(silent).manifest.images
    assert "base image" not in compiled


@pytest.mark.parametrize("broken", ["missing", "other"])
def test_a_damaged_bundle_is_refused_by_the_name_of_its_file(
    compiled: list[str], broken: str
) -> None:
    folder, _ = build.ensure_built(silent)
    assert compiled
    if broken == "missing":
        (folder / IMAGES).unlink()
    else:
        (folder / IMAGES).write_bytes(b"something else")
    with pytest.raises(LifecycleError) as refused:
        ready_kubernetes(silent)
    assert refused.value.exit_code is Exit.REFUSED
    (message,) = refused.value.diagnostics
    assert message.code == "GC1000"
    assert str(folder / IMAGES) in message.summary
    assert "make bundle-kubernetes" in message.hint


def test_what_was_applied_is_known_when_the_cache_was_emptied(
    compiled: list[str], cluster: Cluster
) -> None:
    at = ready_kubernetes(silent)
    cluster.identify()
    cluster.__dict__["kubernetes"] = at
    cluster.keep_spec()
    (build.built_folder() / "manifest.json").unlink()
    assert open_cluster(str(cluster.spec_path)).kubernetes == at
    assert compiled


def test_machines_take_packages(root: Path) -> None:
    machines = load(root / "examples" / "kubernetes-h200.yaml").spec
    assert machines is not None
    assert not takes_own_build(machines)
    assert takes_own_build(spec_of())
    slurm = spec_of(TEXT.partition("scheduler:")[0] + "scheduler: {type: slurm}\n")
    assert not takes_own_build(slurm)
