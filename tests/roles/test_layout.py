"""Every role has the shape that the compiler, the stamps and a newcomer rely on."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from gcluster.inventory.compile.steps import NAMED_PHASES, PHASES

ROOT = Path(__file__).parents[2]
ROLES = sorted(path.name for path in (ROOT / "roles").iterdir() if path.is_dir())
WHOLE = "main"  # the role used as a whole: all its phases, one after the other


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def entry_points(role: str) -> dict[str, dict[str, dict[str, Any]]]:
    specs = read(ROOT / "roles" / role / "meta/argument_specs.yml")["argument_specs"]
    return {name: specs[name].get("options") or {} for name in specs}


def test_what_follows_from_the_roles_meta_files_is_up_to_date() -> None:
    """Defaults follow from argument_specs, the collection's README from both (`make docs`)."""
    done = subprocess.run(
        [sys.executable, ROOT / ".ci/roles.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


@pytest.mark.parametrize("role", ROLES)
def test_an_option_is_declared_the_same_at_every_entry_point(role: str) -> None:
    seen: dict[str, Any] = {}
    for options in entry_points(role).values():
        for name, option in options.items():
            assert seen.setdefault(name, option) == option, name


@pytest.mark.parametrize("role", ROLES)
def test_an_option_without_a_default_is_required(role: str) -> None:
    neither = {
        f"{entry}.{name}"
        for entry, options in entry_points(role).items()
        for name, option in options.items()
        if ("default" in option) == option.get("required", False)
    }
    assert neither == set()


@pytest.mark.parametrize("role", ROLES)
def test_task_files_are_phases_and_each_phase_is_an_entry_point(role: str) -> None:
    files = {path.stem for path in (ROOT / "roles" / role / "tasks").glob("*.yml")}
    assert files - {WHOLE} <= {*PHASES, *NAMED_PHASES}
    assert set(entry_points(role)) == files


@pytest.mark.parametrize("role", ROLES)
def test_the_whole_role_takes_exactly_what_its_phases_take(role: str) -> None:
    points = entry_points(role)
    of_phases = {name for entry, options in points.items() if entry != WHOLE for name in options}
    assert set(points[WHOLE]) == of_phases


@pytest.mark.parametrize("role", ROLES)
def test_every_option_carries_the_name_of_its_role(role: str) -> None:
    names = {name for options in entry_points(role).values() for name in options}
    assert {name for name in names if not name.startswith(f"{role}_")} == set()


@pytest.mark.parametrize("role", ROLES)
def test_every_role_has_a_scenario_that_converges_and_tests_it(role: str) -> None:
    scenario = ROOT / "molecule" / role
    assert (scenario / "molecule.yml").is_file()
    assert f"gcluster.cluster.{role}" in (scenario / "converge.yml").read_text(encoding="utf-8")
    assert list((scenario / "tests").glob("test_*.py"))


def test_what_the_scenarios_tests_import_is_there_when_molecule_runs_them(tmp_path: Path) -> None:
    (tmp_path / "inventory.yml").write_text("all: {hosts: {node01: }}\n")
    verifier = read(ROOT / ".config/molecule/config.yml")["verifier"]["env"]
    environment = {
        "PYTHONPATH": verifier["PYTHONPATH"].replace("${MOLECULE_PROJECT_DIRECTORY}", str(ROOT)),
        "MOLECULE_EPHEMERAL_DIRECTORY": str(tmp_path),
        "MOLECULE_INVENTORY_FILE": str(tmp_path / "inventory.yml"),
        "MOLECULE_SCENARIO_DIRECTORY": str(ROOT / "molecule/nccl"),
    }
    run_each = "import runpy, sys; [runpy.run_path(path) for path in sys.argv[1:]]"
    files = sorted((ROOT / "molecule").glob("**/test_*.py"))
    done = subprocess.run(
        [sys.executable, "-B", "-c", run_each, *files],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_every_program_of_a_role_has_an_ending_by_which_linters_recognise_it() -> None:
    programs = (ROOT / "roles").glob("*/files/libexec/*")
    assert {
        path.name for path in programs if path.suffix not in {".py", ".sh"} and path.is_file()
    } == set()


@pytest.mark.parametrize("role", ROLES)
def test_no_module_is_called_by_a_short_name(role: str) -> None:
    def modules(task: dict[str, Any]) -> set[str]:
        inner = [part for key in ("block", "rescue", "always") for part in task.get(key, [])]
        named = {key for key in task if "." in key}
        if not inner:
            assert len(named) == 1, task
        return named.union(*map(modules, inner))

    folders = (ROOT / "roles" / role / name for name in ("tasks", "handlers"))
    files = [path for folder in folders for path in folder.glob("*.yml")]
    used = {module for path in files for task in read(path) or [] for module in modules(task)}
    own = {f"gcluster.cluster.{path.stem}" for path in (ROOT / "plugins/modules").glob("*.py")}
    assert {module for module in used - own if not module.startswith("ansible.builtin.")} == set()


@pytest.mark.parametrize("role", ROLES)
def test_a_role_whose_files_another_one_has_names_it(role: str) -> None:
    """So gitops/pull, which sends roles to nodes, finds that it needs that one too."""
    text = "".join(p.read_text(encoding="utf-8") for p in (ROOT / "roles" / role).rglob("*.yml"))
    used = set(re.findall(r"role_path[^/\n]*/\.\./(\w+)/", text))
    assert used <= set(re.findall(r"gcluster\.cluster\.(\w+)", text))
