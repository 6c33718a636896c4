"""What the bundle is built from agrees with itself, and a build is found by exactly that."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import msgspec
import pytest

from gcluster.inventory.compile.kubernetes_objects.objects import BUILT, PAUSE, SIMULATED_GPU
from gcluster.lifecycle.cluster.outcome import LifecycleError
from gcluster.lifecycle.kubernetes.release.recipe import (
    FOLDER,
    VARIABLE,
    bundle_key,
    program_key,
    recipe,
    recipe_folder,
    sources,
)

PROGRAMS = FOLDER / "programs"
PREVIOUS = Path(__file__).parents[2] / "e2e" / "kubernetes_previous"


@pytest.fixture(params=["ours", "previous"])
def either(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Build from our own recipe, then from the one of the upgrade's test."""
    if request.param == "previous":
        monkeypatch.setenv(VARIABLE, str(PREVIOUS))


def required(program: str) -> dict[str, str]:
    path = sources(program, recipe(), recipe_folder())["go.mod"]
    text = path.read_text(encoding="utf-8")
    return dict(re.findall(r"^\s*(?:require )?(\S+\.\S+/\S+) v(\S+)", text, re.MULTILINE))


@pytest.mark.usefixtures("either")
def test_versions_are_those_that_the_modules_require() -> None:
    made_of = recipe()
    assert required("kube")["k8s.io/kubernetes"] == made_of.kubernetes
    assert required("etcd")["go.etcd.io/etcd/server/v3"] == made_of.etcd.partition("-")[0]
    assert required("coredns")["github.com/coredns/coredns"] == made_of.coredns
    assert made_of.programs["kube"].link["k8s.io/component-base/version.gitVersion"] == (
        f"v{made_of.kubernetes}"
    )


def test_programs_share_what_is_compiled_once() -> None:
    kube = required("kube")
    others = {**required("etcd"), **required("coredns")}
    shared = kube.keys() & others.keys()
    assert len(shared) > 50
    for program in ("etcd", "coredns"):
        theirs = required(program)
        assert {name: theirs[name] for name in shared & theirs.keys()} == {
            name: kube[name] for name in shared & theirs.keys()
        }, f"{program}: Go compiles a package once for each version of its module"


@pytest.mark.usefixtures("either")
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


def test_every_folder_is_a_program_and_the_readme_mentions_it() -> None:
    folders = {path.name for path in PROGRAMS.iterdir() if path.is_dir()}
    assert folders == set(recipe().programs)
    answer = (PROGRAMS / "README.md").read_text(encoding="utf-8")
    assert all(f"| `{name}` |" in answer for name in folders)


def test_no_image_is_named_as_if_it_were_the_projects_own() -> None:
    assert recipe().repository.startswith("gcluster.local/")


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("go.mod", {"kube", "agents"}),
        ("go.sum", {"kube", "agents"}),
        ("routed_cni.go", {"kube", "agents"}),
        ("main.go", {"kube"}),
    ],
)
def test_a_changed_source_is_another_build_of_what_it_belongs_to(
    tmp_path: Path, name: str, changed: set[str]
) -> None:
    made_of = recipe()
    shutil.copytree(PROGRAMS, tmp_path / "programs")
    before = {p: program_key(p, made_of, tmp_path) for p in made_of.programs}
    whole = bundle_key(made_of, tmp_path)
    with (tmp_path / "programs" / "kube" / name).open("a") as file:
        file.write("// changed\n")
    after = {p: program_key(p, made_of, tmp_path) for p in made_of.programs}
    assert {p for p in before if before[p] != after[p]} == changed
    assert bundle_key(made_of, tmp_path) != whole


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


def test_the_previous_minor_takes_all_but_its_modules_from_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours, before = recipe(), {name: program_key(name, recipe()) for name in recipe().programs}
    monkeypatch.setenv(VARIABLE, str(PREVIOUS))
    made_of = recipe()
    assert [int(r.kubernetes.split(".")[1]) for r in (made_of, ours)] == [34, 35]
    alike = {n for n in made_of.programs if program_key(n, made_of) == before[n]}
    assert alike == {"etcd", "pause"}
    files = sources("kube", made_of, PREVIOUS)
    own = {file for file, path in files.items() if PREVIOUS in path.resolve().parents}
    assert own == {"go.mod", "go.sum"}
    assert files.keys() == sources("kube", ours, FOLDER).keys()


def test_where_files_lie_is_no_part_of_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = bundle_key(recipe())
    shutil.copytree(PROGRAMS, tmp_path / "elsewhere")
    text = (FOLDER / "programs.yaml").read_text(encoding="utf-8")
    for name in recipe().programs:
        text = text.replace(f"\n  {name}: {{", f"\n  {name}: {{folders: [elsewhere/{name}], ")
    text = text.replace("\n  kube:", "\n  kube:\n    folders: [elsewhere/kube]")
    text = text.replace("folders: [elsewhere/agents], folders: [programs/", "folders: [elsewhere/")
    text = text.replace(
        "folders: [elsewhere/agents, programs/", "folders: [elsewhere/agents, elsewhere/"
    )
    (tmp_path / "programs.yaml").write_text(text)
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    assert [program.folders != [] for program in recipe().programs.values()] == [True] * 5
    assert bundle_key(recipe()) == key


@pytest.mark.parametrize("text", [None, "toolchain: go1.25.4\n"])
def test_a_folder_without_a_recipe_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None
) -> None:
    if text is not None:
        (tmp_path / "programs.yaml").write_text(text)
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    with pytest.raises(LifecycleError) as error:
        recipe()
    (message,) = error.value.diagnostics
    assert (message.code, VARIABLE in message.hint) == ("GC1000", True)
