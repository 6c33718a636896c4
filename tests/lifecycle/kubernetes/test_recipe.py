"""What the bundle is built from agrees with itself, and a build is found by exactly that."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import msgspec
import pytest

from gcluster.inventory.compile.kubernetes_objects.images import BUILT, PAUSE, SIMULATED_GPU
from gcluster.lifecycle.kubernetes.recipe import PROGRAMS, bundle_key, program_key, recipe


def required(program: str) -> dict[str, str]:
    text = (PROGRAMS / program / "go.mod").read_text(encoding="utf-8")
    return dict(re.findall(r"^\s*(?:require )?(\S+\.\S+/\S+) v(\S+)", text, re.MULTILINE))


def test_versions_are_those_that_the_modules_require() -> None:
    made_of = recipe()
    assert required("kube")["k8s.io/kubernetes"] == made_of.kubernetes
    assert required("etcd")["go.etcd.io/etcd/server/v3"] == made_of.etcd.partition("-")[0]
    assert required("coredns")["github.com/coredns/coredns"] == made_of.coredns
    assert made_of.programs["kube"].link["k8s.io/component-base/version.gitVersion"] == (
        f"v{made_of.kubernetes}"
    )


def test_every_image_has_the_tag_of_its_version() -> None:
    made_of = recipe()
    tags = {image.name: image.tag for image in made_of.images}
    for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy"):
        assert tags[name] == f"v{made_of.kubernetes}"
    assert (tags["etcd"], tags["coredns"], tags["pause"]) == (
        made_of.etcd,
        f"v{made_of.coredns}",
        made_of.pause,
    )


def test_the_images_that_compiled_objects_name_are_those_of_the_bundle() -> None:
    made_of = recipe()
    assert made_of.repository == BUILT
    tags = {f"{image.name}:{image.tag}" for image in made_of.images}
    assert {PAUSE, SIMULATED_GPU} <= tags


def test_every_folder_is_a_program_and_the_readme_tells_of_it() -> None:
    folders = {path.name for path in PROGRAMS.iterdir() if path.is_dir()}
    assert folders == set(recipe().programs)
    told = (PROGRAMS / "README.md").read_text(encoding="utf-8")
    assert all(f"| `{name}` |" in told for name in folders)


def test_no_image_is_named_as_if_it_were_the_projects_own() -> None:
    assert recipe().repository.startswith("gcluster.local/")


@pytest.mark.parametrize("name", ["go.mod", "go.sum", "main.go"])
def test_a_changed_source_is_another_build_of_that_program_only(tmp_path: Path, name: str) -> None:
    made_of, programs = recipe(), tmp_path / "programs"
    shutil.copytree(PROGRAMS, programs)
    before = {p: program_key(p, made_of, programs) for p in made_of.programs}
    whole = bundle_key(made_of, programs)
    with (programs / "kube" / name).open("a") as file:
        file.write("// changed\n")
    after = {p: program_key(p, made_of, programs) for p in made_of.programs}
    assert {p for p in before if before[p] != after[p]} == {"kube"}
    assert bundle_key(made_of, programs) != whole


def test_another_toolchain_is_another_build() -> None:
    made_of = recipe()
    other = msgspec.structs.replace(made_of, toolchain="go1.25.9")
    assert bundle_key(other) != bundle_key(made_of)
    assert program_key("pause", other) != program_key("pause", made_of)


def test_an_image_more_is_another_bundle_of_the_same_programs() -> None:
    made_of = recipe()
    fewer = msgspec.structs.replace(made_of, images=made_of.images[1:])
    assert bundle_key(fewer) != bundle_key(made_of)
    assert program_key("kube", fewer) == program_key("kube", made_of)
