"""`gcluster init`: a spec to start from, which is valid and overwrites nothing."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gcluster.cli.render.spec.starter import DEFAULTS, Wish, machines_of, starter_spec
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.diagnostics import Severity
from gcluster.schemas.load import load_text

SCRIPT = str(Path(sys.executable).with_name("gcluster"))


@pytest.mark.parametrize("provider", ["local", "bare-metal", "ssh-fleet"])
def test_what_init_writes_is_valid_and_names_its_schema(
    run: Callable[..., Any], tmp_path: Path, provider: str
) -> None:
    path = tmp_path / "cluster.yaml"
    assert run("init", str(path), "--provider", provider, "--name", "lab-1").exit_code == 0
    text = path.read_text(encoding="utf-8")
    assert "# yaml-language-server: $schema=" in text
    done = run("validate", str(path))
    assert (done.exit_code, done.stdout) == (0, "ok: lab-1: 2 pools, 5 hosts\n")


@pytest.mark.parametrize("provider", ["local", "bare-metal", "ssh-fleet"])
def test_the_lines_that_are_commented_out_are_valid_too(
    run: Callable[..., Any], tmp_path: Path, provider: str
) -> None:
    path = tmp_path / "cluster.yaml"
    run("init", str(path), "--provider", provider)
    text = path.read_text(encoding="utf-8")
    at = text.index("# users:")
    path.write_text(text[:at] + text[at:].replace("# ", "", 1).replace("\n# ", "\n"))
    done = run("validate", str(path))
    assert done.exit_code == 0, done.stdout


def test_a_file_that_exists_is_left_as_it_is(run: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text("mine", encoding="utf-8")
    done = run("init", str(path))
    assert done.exit_code == 1
    assert "exists already" in done.stderr
    assert path.read_text(encoding="utf-8") == "mine"


def test_a_name_that_no_cluster_can_have_writes_nothing(
    run: Callable[..., Any], tmp_path: Path
) -> None:
    done = run("init", str(tmp_path / "c.yaml"), "--name", "Not A Name")
    assert done.exit_code == 64
    assert not (tmp_path / "c.yaml").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--region", "eu-west-1"], "--region is of a cloud: local has none"),
        (
            ["--provider", "ssh-fleet", "--region", "x"],
            "--region is of a cloud: ssh-fleet has none",
        ),
        (["--repo", "https://git.example/x"], "--repo goes with --ci"),
        (["--ci", "github", "--machine", "p5.48xlarge"], "--machine is of a spec"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(
    run: Callable[..., Any], tmp_path: Path, words: list[str], message: str
) -> None:
    path = tmp_path / "cluster.yaml"
    result = run("init", str(path), *words)
    assert (result.exit_code, path.exists()) == (64, False)
    assert f"error[GC941]: {message}" in result.stderr


def test_the_next_commands_are_reported(run: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    done = run("init", str(path))
    for command in (f"gcluster validate {path}", "gcluster doctor", f"gcluster up {path}"):
        assert command in done.stdout


def test_a_folder_that_does_not_exist_is_reported(run: Callable[..., Any], tmp_path: Path) -> None:
    done = run("init", str(tmp_path / "no" / "c.yaml"))
    assert done.exit_code == 1
    assert "No such file or directory" in done.stderr


def test_any_machine_of_the_catalog_gets_a_spec_that_validates(tmp_path: Path) -> None:
    catalog, wrong = load_catalog(), {}
    for provider in DEFAULTS:
        for machine in machines_of(provider, catalog):
            text = starter_spec(Wish(provider=provider, name="lab", machine=machine, nodes=2))
            loaded = load_text(text, file="c.yaml", folder=tmp_path)
            errors = [d.code for d in loaded.diagnostics if d.severity is Severity.ERROR]
            if errors:
                wrong[provider, machine] = errors
    assert wrong == {}


def test_no_spec_to_start_from_leaves_the_fabric_class_of_its_nodes_unknown(tmp_path: Path) -> None:
    """The AllReduce at the end of `up` can't pass where it is, and nothing judges its speed."""
    catalog, unknown = load_catalog(), set()
    for provider in DEFAULTS:
        for machine in machines_of(provider, catalog):
            text = starter_spec(Wish(provider=provider, name="lab", machine=machine, nodes=2))
            loaded = load_text(text, file="c.yaml", folder=tmp_path)
            if {d.code for d in loaded.diagnostics} & {"GC217", "GC227"}:
                unknown.add((provider, machine))
    assert unknown == set()


@pytest.mark.parametrize("provider", ["aws", "gcp", "azure", "oci"])
def test_the_scratch_that_is_commented_out_fits_its_cloud(tmp_path: Path, provider: str) -> None:
    text = starter_spec(Wish(provider=provider, name="lab", nodes=2))
    text = text.replace("  # scratch:", "  scratch:").replace("# budget:", "budget:")
    loaded = load_text(text, file="c.yaml", folder=tmp_path)
    errors = {d.code for d in loaded.diagnostics if d.severity is Severity.ERROR}
    assert errors <= {"GC601"}, "the made-up budget alone may be too small"


def test_a_machine_that_the_provider_has_not_writes_nothing(
    run: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "c.yaml"
    done = run("init", str(path), "--provider", "aws", "--machine", "p5.48xlarg")
    assert done.exit_code == 64
    assert 'did you mean "p5.48xlarge"?' in done.stderr
    done = run("init", str(path), "--provider", "gcp", "--region", "us-centrall1")
    assert done.exit_code == 64
    assert 'did you mean "us-central1"?' in done.stderr
    assert not path.exists()


def test_alone_it_prompts_on_a_terminal_until_the_answer_is_one(tmp_path: Path) -> None:
    answers = iter(["awz", "gcp", "", "0", "8"])
    ours, theirs = pty.openpty()
    shown = ""
    with subprocess.Popen(
        [SCRIPT, "init", "--name", "trial"],
        stdin=theirs, stdout=theirs, stderr=theirs, cwd=tmp_path, start_new_session=True,
    ):  # fmt: skip
        os.close(theirs)
        with contextlib.suppress(OSError):  # the terminal is closed at the end
            while text := os.read(ours, 4096).decode():
                shown += text
                if text.rstrip().endswith(":"):
                    os.write(ours, f"{next(answers, '')}\n".encode())
    os.close(ours)
    assert "awz is none of them" in shown
    written = (tmp_path / "cluster.yaml").read_text(encoding="utf-8")
    assert "region: us-central1" in written
    assert "count: 8 " in written
