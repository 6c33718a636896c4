"""Local nodes take what the projects publish where it can be reached; its servers are doubles."""

from __future__ import annotations

import hashlib
import tarfile

import pytest

from gcluster.lifecycle.cluster.progress import Finding, Progress, silent
from gcluster.lifecycle.kubernetes.release import build, source
from gcluster.lifecycle.kubernetes.release.recipe import recipe
from gcluster.lifecycle.kubernetes.release.release import Release, unreachable
from gcluster.lifecycle.kubernetes.release.source import ready_kubernetes
from gcluster.schemas.diagnostics import Diagnostic
from gcluster.schemas.stack.bundle import IMAGES

from .release_double import Servers


@pytest.fixture
def reachable(
    compiled: list[str], servers: tuple[Servers, Release], monkeypatch: pytest.MonkeyPatch
) -> Servers:
    """A machine that reaches the projects' sites; what of its own was compiled is in `compiled`."""
    assert compiled == []
    content, of = servers
    content.push("etcd", recipe().etcd)
    monkeypatch.setattr(source, "release", lambda: of)
    monkeypatch.setattr(source, "unreachable", unreachable)
    return content


def notes_of(events: list[Progress]) -> list[Diagnostic]:
    return [event.diagnostic for event in events if isinstance(event, Finding)]


def test_what_is_published_is_fetched_and_our_own_compiled(
    reachable: Servers, compiled: list[str]
) -> None:
    at = ready_kubernetes(silent)
    assert [name for name in compiled if name != "base image"] == ["agents"]
    made = at.manifest
    assert made.made_from == "release"
    planned = build.planned_bundle()
    assert [i.reference for i in made.images] != []
    assert {i.reference for i in made.images} == {i.reference for i in planned.images}
    assert {p for f in made.files for p in f.programs} == {
        p for f in planned.files for p in f.programs
    }
    folder = build.built_folder(made.key)
    for name in ("kubeadm", "kubectl", "kubelet"):
        assert (folder / "bin" / name).read_bytes() == f"program {name}".encode()
        assert (folder / "bin" / name).stat().st_mode & 0o777 == 0o755
    with tarfile.open(folder / IMAGES) as archive:
        names = set(archive.getnames())
    published = hashlib.sha256(b"layer of kube-apiserver").hexdigest()
    assert f"blobs/sha256/{published}" in names
    assert {f"blobs/{image.digest.replace(':', '/')}" for image in made.images} <= names
    assert reachable


@pytest.mark.usefixtures("reachable")
def test_it_is_fetched_once(servers: tuple[Servers, Release], compiled: list[str]) -> None:
    first = ready_kubernetes(silent)
    servers[0].clear()
    compiled.clear()
    assert ready_kubernetes(silent) == first
    assert compiled == []


@pytest.mark.usefixtures("reachable")
def test_our_own_build_is_taken_where_it_is_there(compiled: list[str]) -> None:
    build.ensure_built(silent)
    compiled.clear()
    assert ready_kubernetes(silent).manifest.made_from == "modules"
    assert "agents" not in compiled


@pytest.mark.parametrize(
    ("gone", "why"),
    [
        ("/v1.35.4/bin/linux/amd64/kubeadm.sha256", "kubeadm.sha256 was not fetched"),
        ("/v1.35.4/bin/linux/amd64/kubelet", "kubelet"),
        ("/v2/coredns/coredns/manifests/v1.13.1", "coredns"),
    ],
)
def test_what_can_not_be_fetched_whole_is_compiled_with_the_reason(
    reachable: Servers, compiled: list[str], gone: str, why: str
) -> None:
    del reachable[gone]
    events: list[Progress] = []
    assert ready_kubernetes(events.append).manifest.made_from == "modules"
    assert {"kube", "etcd", "coredns", "pause"} <= {*compiled}
    (note,) = notes_of(events)
    assert note.code == "GC1032"
    assert why in note.detail
    left = [path.name for path in build.built_folder().parent.iterdir() if path.is_dir()]
    assert sorted(left) == sorted(["programs", build.built_folder().name])


def test_a_machine_that_reaches_nothing_compiles_with_a_note(compiled: list[str]) -> None:
    events: list[Progress] = []
    assert ready_kubernetes(events.append).manifest.made_from == "modules"
    assert "agents" not in compiled
    assert [(note.code, note.detail) for note in notes_of(events)] == [("GC1032", "no network")]


def test_an_image_is_published_or_ours() -> None:
    made_of = recipe()
    assert made_of.is_published
    ours = {image.name for image in made_of.alone().images}
    assert ours == {"routed-cni", "simulated-gpu"}
    assert made_of.alone().compiled() == ("agents",)
