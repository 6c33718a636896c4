"""What is built is what people install: wheel and sdist carry everything, and the wheel works.

The wheel is installed into an environment that has the runtime lock and nothing else, so that
neither the checkout nor a developer's tool can replace what the wheel lacks. Every verb is run
there.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.golden_files import CASES, read_cases

from gcluster.cli.app import command
from gcluster.inventory.compile.steps import PHASES

pytestmark = pytest.mark.package

COLLECTION = "gcluster/ansible_collections/gcluster/cluster"
BIN = Path(sys.executable).parent
LOOKING = {
    "hosts": "all",
    "gather_facts": False,
    "vars": {"ansible_python_interpreter": sys.executable},
    "tasks": [{"import_role": {"name": "gcluster.cluster.base", "tasks_from": "preflight.yml"}}],
}
"""A play that runs a phase of a role on this machine and changes nothing."""


IMPORT_ALL = """\
import importlib, json, pkgutil
import gcluster
failed = {}
for package in ("cli", "inventory", "lifecycle", "schemas", "stacks"):
    top = importlib.import_module(f"gcluster.{package}")
    for module in pkgutil.walk_packages(top.__path__, f"{top.__name__}.", onerror=str):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            failed[module.name] = error.name
print(json.dumps(failed))
"""
"""Prints module -> the missing package, of those that can't be imported."""

SIMULATED = """\
apiVersion: gcluster/v1
name: paper
sites:
  lab: {provider: simulated}
pools:
  head: {site: lab, role: controller}
  train: {site: lab, machine: sim.h100x8, count: 3}
scheduler: {type: slurm}
"""
FILES = {
    "scontrol.txt": "tests/cases/adopt/slurm/scontrol.txt",
    "burst.yaml": "tests/cases/burst/simulate/spec.yaml",
    "day.swf": "tests/cases/burst/simulate/day.swf",
}
"""Name in the working folder -> what is copied there."""
JUDGE = "smoke --log good.log --fabric ethernet --machine sim.h100x8 --nodes 4"
RUNS = {
    "init demo.yaml": 0,
    "validate demo.yaml": 0,
    "validate demo.yaml sim.yaml --format sarif": 0,
    "validate demo.yaml sim.yaml --format junit -o report.xml": 0,
    "validate demo.yaml --fix --write": 0,
    "explain GC101": 0,
    "explain --format json": 0,
    "schema": 0,
    "machines": 0,
    "machines p5.48xlarge --format json": 0,
    "software demo.yaml": 0,
    "cost demo.yaml sim.yaml --chart": 0,
    "compile demo.yaml -o tree": 0,
    "compile demo.yaml -o tree --format json": 0,
    JUDGE: 0,
    f"{JUDGE} --format json": 0,
    "adopt slurm scontrol.txt --gpu H100 -o adopted.yaml": 0,
    "burst simulate burst.yaml day.swf": 0,
    "bundle --check tree": 4,
    "doctor --permissions aws": 0,
    "reconcile unit --repo https://git.example.com/specs": 0,
    "reconcile status": 0,
    "plan sim.yaml --out sim.gcplan": 0,
    "plan sim.yaml --format markdown": 0,
    "up sim.yaml --plan sim.gcplan --format json": 0,
    "status sim.yaml": 0,
    "history sim.yaml": 0,
    "show sim.yaml none": 64,
    "size train --model llama-3-8b --tokens 1T --machine p5.48xlarge": 0,
    "size own --machine dgx-h100": 0,
    "top sim.yaml --once": 1,
    "report sim.yaml": 1,
    "dashboard sim.yaml": 1,
    "run sim.yaml --dry-run -- hostname": 0,
    "run sim.yaml --user ada -- hostname": 1,
    "jobs sim.yaml": 1,
    "logs sim.yaml 7": 1,
    "cancel sim.yaml 7": 1,
    "drift sim.yaml": 0,
    "ledger check sim.yaml": 0,
    "repair sim.yaml": 0,
    "drain sim.yaml train001 --reason broken": 4,
    "resume sim.yaml train001": 4,
    "reboot sim.yaml train001 --yes": 4,
    "backup sim.yaml": 1,
    "restore sim.yaml": 1,
    "rotate munge sim.yaml": 1,
    "rotate encryption sim.yaml": 0,
    "ssh sim.yaml train001 true": 1,
    "kubeconfig sim.yaml": 1,
    "acceptance sim.yaml": 1,
    "image sim.yaml --out images": 0,
    "unlock sim.yaml --lock lab/1": 1,
    "expire sim.yaml": 0,
    "state check sim.yaml": 0,
    "state repair sim.yaml": 0,
    "state upgrade sim.yaml": 0,
    "down sim.yaml --yes": 0,
}
"""Command line -> exit code, each verb at least once. Simulated nodes run no scheduler, and nothing
answers at their addresses."""


def _run(*command: str | Path, cwd: Path, expected: int = 0, home: Path | None = None) -> str:
    """Run a command with the environment's own tools; the checkout is not on its path."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "GCLUSTER"))}
    environment["PATH"] = f"{BIN}:{environment['PATH']}"
    if home is not None:
        environment |= {f"XDG_{kind}_HOME": str(home / kind) for kind in ("DATA", "CACHE")}
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, env=environment, capture_output=True, text=True,
        check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == expected, f"{command}\n{done.stdout}\n{done.stderr}"
    assert "GC949" not in done.stderr  # an internal error
    return done.stdout


@pytest.fixture(scope="module")
def dist(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the wheel and the sdist built from the checkout."""
    folder = tmp_path_factory.mktemp("dist")
    _run("hatchling", "build", "-d", folder, cwd=root)
    return folder


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    """Return the wheel's path."""
    (path,) = dist.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def sdist(dist: Path) -> Path:
    """Return the sdist's path."""
    (path,) = dist.glob("*.tar.gz")
    return path


def _environment(root: Path, folder: Path, lock: str, wheel: Path) -> Path:
    """Make an environment of the packages of one lock and the wheel, and nothing else."""
    _run("uv", "venv", "--quiet", "--python", sys.executable, folder, cwd=root)
    install = ("uv", "pip", "install", "--quiet", "--python", folder / "bin/python")
    _run(*install, "--require-hashes", "-r", root / "requirements" / lock, cwd=root)
    _run(*install, "--no-deps", "--offline", wheel, cwd=root)
    return folder


@pytest.fixture(scope="module")
def installed(root: Path, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an environment as a user of the wheel has it."""
    folder = tmp_path_factory.mktemp("installed") / "venv"
    return _environment(root, folder, "runtime.txt", wheel)


def _carried(root: Path, tracked: tuple[Path, ...]) -> set[str]:
    """Return every tracked file of the packages and roles, as the wheel should name it."""
    names = set()
    for path in tracked:
        if (root / path).is_symlink():
            continue  # what it links to is checked in test_the_wheel_carries
        if path.parts[0] in {"cli", "inventory", "lifecycle", "schemas", "stacks"}:
            names.add(f"gcluster/{path}")
        elif path.parts[0] == "roles":
            names.add(f"{COLLECTION}/{path}")
        elif path.parts[0] == "src":
            names.add(str(path.relative_to("src")))
    return names


def test_the_wheel_carries_every_tracked_file_of_the_packages_and_roles(
    root: Path, tracked: tuple[Path, ...], wheel: Path
) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert _carried(root, tracked) - names == set()
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_wheel_carries_nothing_but_the_package(wheel: Path) -> None:
    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"gcluster"}


@pytest.mark.parametrize(
    "part",
    [
        f"{COLLECTION}/galaxy.yml",
        f"{COLLECTION}/meta/runtime.yml",
        f"{COLLECTION}/roles/slurm/tasks/",
        "gcluster/schemas/structure/cluster.schema.json",
        "gcluster/schemas/catalog/machines/",
        "gcluster/schemas/codes/register.yaml",
        "gcluster/schemas/codes/examples/GC102.yaml",
        "gcluster/py.typed",
    ],
)
def test_the_wheel_carries(wheel: Path, part: str) -> None:
    assert any(name.startswith(part) for name in zipfile.ZipFile(wheel).namelist())


def test_the_sdist_builds_the_same_wheel_again(sdist: Path, wheel: Path, tmp_path: Path) -> None:
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    _run("hatchling", "build", "-t", "wheel", "-d", tmp_path / "again", cwd=source)
    (again,) = (tmp_path / "again").glob("*.whl")
    first, second = zipfile.ZipFile(wheel), zipfile.ZipFile(again)
    assert {name: first.read(name) for name in first.namelist()} == {
        name: second.read(name) for name in second.namelist()
    }


def test_the_installed_command_prints_its_version(
    root: Path, installed: Path, tmp_path: Path
) -> None:
    output = _run(installed / "bin/gcluster", "--version", cwd=tmp_path)
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## [{output.split()[-1]}]" in changelog


def test_every_module_of_the_wheel_is_imported_without_any_extra(
    installed: Path, tmp_path: Path
) -> None:
    failed = json.loads(_run(installed / "bin/python", "-c", IMPORT_ALL, cwd=tmp_path))
    folders = {module.split(".")[2] for module in failed if module.startswith("gcluster.stacks.")}
    assert folders <= {"aws", "azure", "gcp", "oci", "pulumi"}
    assert not [module for module in failed if not module.startswith("gcluster.stacks.")]
    missing = {str(reason).partition(".")[0] for reason in failed.values()}
    assert missing <= {"azure", "boto3", "botocore", "google", "oci", "pulumi"} | {
        f"pulumi_{each}" for each in ("aws", "azure_native", "gcp", "oci")
    }


def _command_lines() -> Iterator[str]:
    """Yield every verb, and every verb with each of its words."""
    group = command()
    for verb in group.list_commands(None):
        yield verb
        below = group.get_command(None, verb)
        if hasattr(below, "list_commands"):
            yield from (f"{verb} {word}" for word in below.list_commands(None))


def test_every_verb_of_the_installed_command_prints_its_help(
    installed: Path, tmp_path: Path
) -> None:
    lines = [*_command_lines()]
    assert len(lines) > 30
    for line in lines:
        output = _run(installed / "bin/gcluster", *line.split(), "--help", cwd=tmp_path)
        assert f"gcluster {line}" in output


@pytest.fixture(scope="module")
def folder(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with what the command lines below read, and a home of its own."""
    path = tmp_path_factory.mktemp("work")
    (path / "sim.yaml").write_text(SIMULATED, encoding="utf-8")
    (path / "good.log").write_text(read_cases(CASES / "smoke.yaml")["good"]["log"])
    for name, source in FILES.items():
        (path / name).write_bytes((root / source).read_bytes())
    return path


@pytest.mark.parametrize(("line", "expected"), RUNS.items())
def test_the_installed_command_runs(
    installed: Path, folder: Path, line: str, expected: int
) -> None:
    """In the order of `RUNS`: a later one may use what an earlier one has written."""
    _run(
        installed / "bin/gcluster", *shlex.split(line), cwd=folder, expected=expected,
        home=folder / "home",
    )  # fmt: skip


def test_the_runs_leave_out_no_verb() -> None:
    assert {line.split()[0] for line in RUNS} == set(command().list_commands(None))


def test_the_installed_command_validates_every_example(
    root: Path, installed: Path, tmp_path: Path
) -> None:
    for example in sorted((root / "examples").glob("*.yaml")):
        _run(installed / "bin/gcluster", "validate", example, cwd=tmp_path)


def test_the_installed_command_writes_the_committed_schema(
    root: Path, installed: Path, tmp_path: Path
) -> None:
    written = _run(installed / "bin/gcluster", "schema", cwd=tmp_path)
    assert written == (root / "schemas/structure/cluster.schema.json").read_text(encoding="utf-8")


def test_ansible_finds_every_role_of_the_installed_collection(
    root: Path, installed: Path, tmp_path: Path
) -> None:
    folder = _run(
        installed / "bin/python", "-c", "import gcluster; print(gcluster.__path__[0])", cwd=tmp_path
    ).strip()
    listing = _run(
        "env", f"ANSIBLE_COLLECTIONS_PATH={folder}", installed / "bin/ansible-doc",
        "--type", "role", "--list", "--json", "gcluster.cluster", cwd=tmp_path,
    )  # fmt: skip
    roles = {path.parent.parent.name for path in (root / "roles").glob("*/meta/argument_specs.yml")}
    assert roles
    assert {f"gcluster.cluster.{role}" for role in roles} - set(json.loads(listing)) == set()


def test_the_installed_collection_builds_and_works_in_a_place_of_its_own(
    installed: Path, tmp_path: Path
) -> None:
    folder = _run(
        installed / "bin/python", "-c", "import gcluster; print(gcluster.__path__[0])", cwd=tmp_path
    ).strip()
    source = Path(folder) / "ansible_collections/gcluster/cluster"
    galaxy, play = installed / "bin/ansible-galaxy", installed / "bin/ansible-playbook"
    _run(galaxy, "collection", "build", source, "--output-path", "built", cwd=tmp_path)
    (archive,) = (tmp_path / "built").glob("gcluster-cluster-*.tar.gz")
    _run(galaxy, "collection", "install", archive, "-p", "elsewhere", "--offline", cwd=tmp_path)
    roles = [path.parent.parent for path in source.glob("roles/*/meta/argument_specs.yml")]
    steps = [
        {"import_role": {"name": f"gcluster.cluster.{role.name}", "tasks_from": phase.name}}
        for role in roles
        for phase in sorted((role / "tasks").glob("*.yml"))
        if phase.stem in PHASES
    ]
    book = tmp_path / "every-phase.yml"
    book.write_text(json.dumps([{"hosts": "all", "gather_facts": False, "tasks": steps}]))
    there = ("env", f"ANSIBLE_COLLECTIONS_PATH={tmp_path}/elsewhere")
    output = _run(*there, play, "-i", "here,", "--list-tasks", book, cwd=tmp_path)
    listed = {line.split(" : ")[0].strip() for line in output.splitlines()}
    assert {f"gcluster.cluster.{role.name}" for role in roles} - listed == set()
    alone = tmp_path / "one-role.yml"
    alone.write_text(json.dumps([LOOKING]))
    local = ("-i", "here,", "--connection", "local")
    assert "failed=0" in _run(*there, play, *local, alone, cwd=tmp_path)
