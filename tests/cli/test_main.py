"""The command as a shell sees it: exit codes, streams, signals, pipes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gcluster.cli.commands import SECTIONS

SCRIPT = str(Path(sys.executable).with_name("gcluster"))
SIMULATED = """\
apiVersion: gcluster/v1
name: closed
sites: {lab: {provider: simulated}}
pools:
  head: {site: lab, role: controller}
  gpu: {site: lab, machine: sim.h100x8, count: 2}
scheduler: {type: slurm}
"""


def test_version_is_printed_and_ends_well(shell: Callable[..., Any]) -> None:
    done = shell("--version")
    assert (done.returncode, done.stdout) == (0, "gcluster 0.1.0\n")


def test_help_shows_the_verbs_in_their_sections(shell: Callable[..., Any]) -> None:
    done = shell("--help")
    assert done.returncode == 0
    order = [done.stdout.index(f"\n{title}:") for title in SECTIONS]
    assert order == sorted(order)


def test_the_bare_command_shows_the_help_as_a_usage_error(shell: Callable[..., Any]) -> None:
    done = shell()
    assert (done.returncode, done.stdout) == (64, "")
    assert "Usage: gcluster" in done.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["validat"], 'there is no verb "validat": did you mean "validate"?'),
        (["validate"], "Missing argument"),
        (["validate", "--bogus", "x"], "--bogus"),
        (["plan", "x.yaml", "y.yaml"], "extra argument"),
        (["status", "demo", "--format", "xml"], "xml"),
    ],
)
def test_a_wrong_command_line_is_exit_code_64(
    run: Callable[..., Any], words: list[str], says: str
) -> None:
    done = run(*words)
    assert done.exit_code == 64
    assert says in done.stderr
    assert "--help" in done.stderr


def test_a_wrong_spec_is_exit_code_2(shell: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("apiVersion: gcluster/v1\nnam: demo\n", encoding="utf-8")
    done = shell("validate", str(path))
    assert done.returncode == 2
    assert done.stderr == ""
    assert 'unknown key "nam"' in done.stdout


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("\n".join(f"key{n}: 1" for n in range(5000)), encoding="utf-8")
    with subprocess.Popen(
        [SCRIPT, "validate", str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_with_130_and_without_a_traceback(number: signal.Signals) -> None:
    reader, writer = os.pipe()
    with subprocess.Popen(
        [sys.executable, "-c", _WAITS], stdin=reader, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"at work\n"
        process.send_signal(number)
        _, output = process.communicate(timeout=60)
    os.close(reader)
    os.close(writer)
    assert process.returncode == 130
    assert b"interrupted" in output
    assert b"Traceback" not in output


# The schema verb is replaced by one that waits: the shortest command that a signal can hit.
_WAITS = """
import sys, time
from gcluster.cli import main
from gcluster.cli.spec import schema
def command():
    print("at work", flush=True)
    time.sleep(60)
schema.command = command
sys.argv = ["gcluster", "schema"]
main.main()
"""


def test_output_survives_a_terminal_that_has_only_ascii(
    shell: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("näme: demo\n", encoding="utf-8")
    done = shell("validate", str(path), PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 2
    assert done.stdout.isascii()
    assert done.stderr == ""


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&- <&-"])
@pytest.mark.parametrize("verb", ["validate", "plan"])
def test_a_closed_stream_changes_no_exit_code_and_ends_in_no_traceback(
    verb: str, closed: str, tmp_path: Path
) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(SIMULATED, encoding="utf-8")
    command = f'"{SCRIPT}" {verb} "{spec}" {closed}'
    done = subprocess.run(
        ["bash", "-c", command],
        env={**os.environ, "XDG_DATA_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("words", ["--help", "validate nope.yaml --format json", "schema cluster"])
def test_a_full_disk_behind_the_output_is_reported_and_is_a_failure(words: str) -> None:
    done = subprocess.run(
        ["bash", "-c", f'"{SCRIPT}" {words} >/dev/full'],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == (
        "error[GC948]: No space left on device\n"
        "  help: make room, then run the same command again: it goes on where it ended\n"
    )
