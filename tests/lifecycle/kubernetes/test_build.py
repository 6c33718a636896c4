"""What is missing is built, what is there is found. Go's compiler is doubled: it takes minutes."""

from __future__ import annotations

import hashlib
import tarfile
from pathlib import Path
from typing import Any

import pytest

from gcluster.lifecycle.cluster.outcome import LifecycleError, failure
from gcluster.lifecycle.cluster.progress import silent
from gcluster.lifecycle.kubernetes.release import build, golang
from gcluster.lifecycle.kubernetes.release.recipe import recipe
from gcluster.schemas.stack.bundle import IMAGES, MANIFEST


def test_a_missing_bundle_is_built_and_found_again_without_building(compiled: list[str]) -> None:
    folder, manifest = build.ensure_built(silent)
    assert sorted(compiled) == sorted({*recipe().programs} - {"agents"})
    compiled.clear()
    assert build.ensure_built(silent) == (folder, manifest)
    assert compiled == []


def test_the_manifest_names_every_file_with_its_sum(compiled: list[str]) -> None:
    assert compiled == []
    folder, manifest = build.ensure_built(silent)
    there = {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}
    assert there == {MANIFEST, *(file.path for file in manifest.files)}
    for file in manifest.files:
        content = (folder / file.path).read_bytes()
        assert hashlib.sha256(content).hexdigest() == file.sha256
        assert len(content) == file.size
    programs = {name for file in manifest.files for name in file.programs}
    assert programs == {"kubeadm", "kubectl", "kubelet"}


def test_the_archive_holds_the_images_that_the_manifest_names(compiled: list[str]) -> None:
    assert compiled == []
    folder, manifest = build.ensure_built(silent)
    with tarfile.open(folder / IMAGES) as archive:
        blobs = {name.rpartition("/")[2] for name in archive.getnames()}
    assert {image.digest.removeprefix("sha256:") for image in manifest.images} <= blobs
    wanted = {f"gcluster.local/k8s/{image.name}:{image.tag}" for image in recipe().images}
    assert {image.reference for image in manifest.images} == wanted
    assert manifest.image("pause") == f"gcluster.local/k8s/pause:{recipe().pause}"


def test_a_bundle_that_was_cut_off_is_recreated_of_the_programs_that_are_there(
    compiled: list[str],
) -> None:
    folder, _ = build.ensure_built(silent)
    (folder / MANIFEST).unlink()
    for left in [*folder.rglob("*")][::-1]:
        left.rmdir() if left.is_dir() else left.unlink()
    folder.rmdir()
    compiled.clear()
    assert build.ensure_built(silent)[0] == folder
    assert compiled == []


def test_a_program_that_does_not_compile_leaves_no_bundle_and_reports_why(
    compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    works = golang.compile_program

    def fails_on_etcd(folder: Path, *others: Any, **more: Any) -> None:
        if folder.name == "etcd":
            raise failure("GC939", "etcd was not compiled: no network")
        works(folder, *others, **more)

    monkeypatch.setattr(golang, "compile_program", fails_on_etcd)
    with pytest.raises(LifecycleError, match="etcd was not compiled"):
        build.ensure_built(silent)
    assert not build.built_folder().exists()
    monkeypatch.setattr(golang, "compile_program", works)
    compiled.clear()
    build.ensure_built(silent)
    assert "kube" not in compiled


def test_a_compilation_reports_how_far_it_is_and_how_long_the_rest_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = tmp_path / "go"
    go.write_text(
        '#!/bin/sh\n[ "$1" = env ] && echo go1.24.4 && exit\n'
        "echo go: downloading example.test/other v1.0.0 >&2\n"
        "for n in $(seq 290); do echo example.test/p$n >&2; done\n"
    )
    go.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    told: list[Any] = []
    moments = iter([0.0, *(60.0 * number for number in range(1, 9))])
    monkeypatch.setitem(build.PACKAGES, "etcd", 580)
    counted = build._counted("etcd", told.append, lambda: next(moments))  # noqa: SLF001  # its clock
    golang.compile_program(tmp_path, tmp_path / "out", "go1.25.4", {}, "amd64", compiled=counted)
    assert [(one.done, one.total) for one in told] == [(n, 580) for n in range(50, 251, 50)]
    assert told[-1].detail == "about 7 min left"  # 250 of 580 in 5 min


def test_the_compilers_own_words_are_in_the_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = tmp_path / "go"
    go.write_text(
        '#!/bin/sh\n[ "$1" = env ] && echo go1.24.4 && exit\n'
        "echo go: downloading example.test/other >&2\n"
        "echo ./main.go:3: undefined: wrong >&2\nexit 1\n"
    )
    go.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(LifecycleError) as raised:
        golang.compile_program(tmp_path, tmp_path / "out", "go1.25.4", {}, "amd64")
    finding = raised.value.diagnostics[0]
    assert finding.summary.endswith("undefined: wrong")
    assert "downloading" not in finding.detail


@pytest.mark.parametrize(("version", "found"), [("go1.19.8", False), ("go1.21.0", True)])
def test_a_go_that_can_not_fetch_toolchains_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, *, found: bool
) -> None:
    go = tmp_path / "go"
    go.write_text(f"#!/bin/sh\necho {version}\n")
    go.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert (golang.host_go() == str(go)) is found
