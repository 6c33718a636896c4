"""What a person sees at 60, 80 and 120 columns: real verbs on a real terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from gcluster.cli.console import width

SCRIPT = str(Path(sys.executable).with_name("gcluster"))
WIDE = 240
"""Columns at which hardly any line has to be continued: what its words are compared with."""
SPEC = """\
apiVersion: gcluster/v1
name: demo
sites: {lab: {provider: simulated}, here: {provider: local}}
pools:
  head: {site: lab, role: controller, count: 1}
  gpu: {site: lab, machine: sim.h100x8, count: 4}
scheduler:
  type: slurm
  partitions: {gpu: {pools: [gpu], default: true}}
"""
WRONG = """\
apiVersion: gcluster/v1
name: demo
sites: {lab: {provider: simulated}}
pools:
  head: {site: lab, role: controller, count: 1}
  gpu: {site: hall, machine: sim.h100x9, count: four}
  spare: {site: lab, machine: p5.48xlrge, count: 2, a_key_that_nobody_knows: "what a long value is"}
scheduler:
  partitions:
    - {name: gpu, pools: [gpux], default: true}
"""
CASES = {
    "help": (),
    "help of up": ("up", "--help"),
    "help of rotate": ("rotate", "--help"),
    "validate": ("validate", "good.yaml"),
    "validate wrong": ("validate", "wrong.yaml"),
    "validate fix": ("validate", "wrong.yaml", "--fix"),
    "plan": ("plan", "good.yaml"),
    "cost": ("cost", "{examples}/hybrid.yaml"),
    "cost chart": ("cost", "{examples}/hybrid.yaml", "--chart"),
    "machines": ("machines",),
    "machine": ("machines", "p5.48xlarge"),
    "software": ("software",),
    "explain": ("explain",),
    "explain a code": ("explain", "GC101"),
    "doctor": ("doctor",),
    "status": ("status", "good.yaml"),
    "history": ("history", "good.yaml"),
    "init": ("init", "new.yaml"),
    "compile": ("compile", "good.yaml", "--out", "made"),
    "down": ("down", "good.yaml"),
    "bundle": ("bundle", "good.yaml"),
    "unknown verb": ("validat",),
    "unknown option": ("plan", "good.yaml", "--nothing-like-this"),
}
SELECTED = {"machines", "cost", "cost chart", "validate wrong"}
"""Cases that leave columns of tables out or cut a long line of a spec where there is no room."""
_TONE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
EXAMPLES = Path(__file__).parent.parent.parent / "examples"


def on_a_terminal(folder: Path, words: tuple[str, ...], columns: int, **environment: str) -> str:
    """Run the command in a fresh folder on a terminal so wide; return what it wrote."""
    folder.mkdir()
    (folder / "good.yaml").write_text(SPEC, encoding="utf-8")
    (folder / "wrong.yaml").write_text(WRONG, encoding="utf-8")
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    known = {k: v for k, v in os.environ.items() if k not in {"COLUMNS", "NO_COLOR", "TERM"}}
    known |= {"TERM": "xterm-256color", "HOME": str(folder), "LANG": "C.UTF-8"}
    known |= {"XDG_DATA_HOME": str(folder / "data"), "COLUMNS": str(columns)}
    given = [word.format(examples=EXAMPLES) for word in words]
    with subprocess.Popen(
        [SCRIPT, *given],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        cwd=folder,
        env=known | environment,
    ) as process:
        os.close(theirs)
        written = b""
        while part := _read(ours):
            written += part
    os.close(ours)
    assert process.returncode is not None
    return written.decode().replace("\r\n", "\n")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # the other end is closed: Linux reports EIO
        return b""


def _words(text: str) -> set[str]:
    """Return the words, without what was cut, what marks it, and the times of this run."""
    answer = re.sub(r"(?s)no room for .*? json", "", _TONE.sub("", text))
    return {word for word in answer.split() if not re.search(r"^[\d.]+$|…|\^|█|░", word)}


@pytest.mark.parametrize("name", CASES)
def test_no_line_is_too_wide_and_no_word_is_broken(tmp_path: Path, name: str) -> None:
    wide = on_a_terminal(tmp_path / "wide", CASES[name], WIDE, NO_COLOR="1")
    wide = wide.replace("/wide", "/here")
    assert _words(wide)
    for columns in (60, 80, 120):
        shown = on_a_terminal(tmp_path / str(columns), CASES[name], columns, NO_COLOR="1")
        shown = shown.replace(f"/{columns}", "/here")
        for line in shown.splitlines():
            longest = max(map(width, line.split()), default=0)
            assert width(line) <= columns or longest > columns // 2, line
        assert _words(shown) - _words(wide) == set(), f"{name} at {columns}"
        if name not in SELECTED:
            assert _words(wide) - _words(shown) == set(), f"{name} at {columns}"


@pytest.mark.parametrize("name", ["validate wrong", "plan", "doctor"])
def test_colour_comes_on_a_terminal_only_and_ends_on_each_line(tmp_path: Path, name: str) -> None:
    shown = on_a_terminal(tmp_path / "tones", CASES[name], 60)
    plain = on_a_terminal(tmp_path / "plain", CASES[name], 60, NO_COLOR="1")
    assert "\x1b[" in shown
    assert "\x1b[" not in plain
    for line in shown.splitlines():
        tones = _TONE.findall(line)
        assert not tones or tones[-1] == "\x1b[0m", line
