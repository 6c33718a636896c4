"""NFS at a local site is a folder that its nodes share, and data that stays. No engine runs."""

from __future__ import annotations

from typing import Any, cast

import msgspec
import pytest
from tests.stacks.conftest import SampleSites

from gcluster.schemas.spec import ClusterSpec
from gcluster.stacks.local import apply, labels, nodes, survey, volumes
from gcluster.stacks.local.engine import Container, Engine, Volume
from gcluster.stacks.provider import SiteContext

SPEC = """{
  "apiVersion": "gcluster/v1", "name": "lab",
  "sites": {"here": {"provider": "local"}},
  "pools": {"head": {"site": "here", "role": "controller"},
            "gpu": {"site": "here", "machine": "sim.h100x8", "count": 2}},
  "storage": {"home": {"type": "nfs", "mount": "/home", "server": "head"},
              "sets": {"type": "nfs", "mount": "/sets", "server": "10.0.0.9", "read_only": true},
              "scratch": {"type": "nfs", "mount": "/scratch/", "server": "head", "pools": ["gpu"]}},
  "scheduler": {"type": "slurm"}
}"""


def _lab() -> ClusterSpec:
    return msgspec.json.decode(SPEC, type=ClusterSpec)


@pytest.fixture
def context(samples: SampleSites) -> SiteContext:
    return msgspec.structs.replace(samples.new("local").context, spec=_lab())


def test_a_node_mounts_the_storage_of_its_pool_at_its_mount_point() -> None:
    spec = _lab()
    assert volumes.flags(spec, "here", "gpu") == (
        "--volume=gcluster-lab-here-home:/home",
        "--volume=gcluster-lab-here-sets:/sets:ro",
        "--volume=gcluster-lab-here-scratch:/scratch",
    )
    assert volumes.mounts_text(spec, "head") == "home:/home sets:/sets:ro"
    made = [r.properties["storage"] for r in survey.graph(spec, "here").resources[1:4]]
    assert made == ["home", "sets", "scratch"]


def test_nodes_of_kubernetes_mount_what_those_of_slurm_do() -> None:
    spec = msgspec.json.decode(SPEC.replace("slurm", "kubernetes"), type=ClusterSpec)
    assert volumes.flags(spec, "here", "gpu") == volumes.flags(_lab(), "here", "gpu")


def test_the_builder_of_an_image_mounts_none() -> None:
    assert volumes.flags(_lab(), "here", "") == ()


def test_users_may_write_to_what_is_empty_but_not_to_homes() -> None:
    assert "'/scratch'" in volumes.opening_script(_lab(), "gpu")
    assert "/home" not in volumes.opening_script(_lab(), "gpu")
    assert volumes.opening_script(_lab(), "head") == ""


def _seen(context: SiteContext, mounts: str, *names: str) -> dict[str, tuple[str, str]]:
    """Return key -> effect and reason where a node with these mounts and these volumes exist."""
    worn = {labels.ROLE: "compute", labels.MOUNTS: mounts}
    found = survey.Survey(
        engine=cast("Engine", None),
        nodes={"gpu001": Container("1", "gcluster-lab-gpu001", worn, "running")},
        network=None,
        namesakes=(),
        networks=(),
        volumes={name: Volume(name, {}) for name in names},
    )
    return {c.resource.key: (c.effect, c.reason) for c in survey.changes(context, found)}


def test_a_node_that_was_made_without_the_mount_is_replaced(context: SiteContext) -> None:
    seen = _seen(context, "home:/home sets:/sets:ro")
    assert seen["node/gpu001"][0] == "replace"
    assert seen["volume/gcluster-lab-here-scratch"][0] == "create"
    whole = volumes.mounts_text(context.spec, "gpu")
    assert "storage" not in _seen(context, whole)["node/gpu001"][1]


def test_a_volume_that_the_spec_no_longer_has_is_kept(context: SiteContext) -> None:
    seen = _seen(context, "", "gcluster-lab-here-old")
    assert seen["volume/gcluster-lab-here-old"] == (
        "keep",
        "no longer in the spec: its data is kept",
    )


class Listed(Engine):
    """An engine with two volumes and nothing else; it records what is removed."""

    removed: tuple[str, ...] = ()
    containers = networks = lambda *_: ()  # type: ignore[assignment]

    def volumes(self, _: Any) -> tuple[Volume, ...]:
        return tuple(Volume(f"v-{s}", {labels.STORAGE: s}) for s in ("home", "scratch"))

    def remove_volume(self, name: str) -> None:
        self.removed += (name,)


def test_only_data_that_is_named_is_removed(
    context: SiteContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Listed("podman")
    monkeypatch.setattr(apply, "find_engine", lambda _: engine)
    assert [item.kept_data for item in apply.existing(context)] == [True, True]
    apply.destroy(msgspec.structs.replace(context, delete_data=frozenset({"scratch"})))
    assert engine.removed == ("v-scratch",)


def test_a_volume_of_no_storage_is_a_stray_that_goes_with_the_cluster(
    context: SiteContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stray(Listed):
        def volumes(self, _: Any) -> tuple[Volume, ...]:
            return (Volume("stray", labels.owner(context)),)

    engine = Stray("podman")
    monkeypatch.setattr(apply, "find_engine", lambda _: engine)
    monkeypatch.setattr(survey, "find_engine", lambda _: engine)
    assert survey.survey(context).volumes == {}
    [left] = apply.existing(context)
    assert (left.name, left.kept_data, left.storage) == ("stray", False, ())
    apply.destroy(context)
    assert engine.removed == ("stray",)


def test_a_new_node_lets_users_write(
    context: SiteContext,
) -> None:
    ran: list[str] = []

    class Recording(Engine):
        def inside(self, container: str, *command: str, **_: Any) -> str:
            ran.append(f"{container}: {command[-1]}")
            return ""

    node = survey.node_resource(context.spec, context.site, "gpu", "gpu001")
    nodes.open_storage(context, Recording("podman"), node, "gcluster-lab-gpu001")
    assert ran == [f"gcluster-lab-gpu001: {volumes.opening_script(context.spec, 'gpu')}"]
