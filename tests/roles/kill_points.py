"""Kills a program of a role at each step by which it changes something: file, folder or process.

Steps are Python's audit events. A file that is opened to be written is two of them: before,
and when it is there and empty.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

_AT = "KILLED_AT_STEP"
_START = '''\
"""Imported by Python before a program: kills it at a step."""
import os
import signal
import sys

AT = int(os.environ["KILLED_AT_STEP"])
CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.utime", "os.symlink"}
READERS = {"openssl", "ps", "pgrep", "systemctl"}
WRITTEN = os.O_WRONLY | os.O_RDWR | os.O_CREAT
steps, opened = 0, False


def step():
    global steps
    steps += 1
    if steps == AT:
        os.kill(os.getpid(), signal.SIGKILL)


def heard(event, values):
    global opened
    if event in CHANGES or (event == "subprocess.Popen" and str(values[0]) not in READERS):
        step()
    elif event == "open" and values[0] != os.devnull and (values[2] or 0) & WRITTEN:
        step()
        opened = True


def returned(frame, event, function):
    global opened
    if opened and event == "c_return":
        opened = False
        step()


sys.addaudithook(heard)
sys.setprofile(returned)
'''


@contextmanager
def killed_at(step: int, folder: Path, patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have each Python that is started meanwhile be killed at a step, counted from 1."""
    (folder / "sitecustomize.py").write_text(_START, encoding="utf-8")
    with patch.context() as within:
        within.setenv(_AT, str(step))
        within.setenv("PYTHONPATH", str(folder))
        within.setenv("PYTHONDONTWRITEBYTECODE", "1")
        yield


def kill_points(
    run: Callable[[Path], int], folder: Path, patch: pytest.MonkeyPatch
) -> Iterator[tuple[int, Path]]:
    """Yield (step, folder) after a run that was killed at each step, until one wasn't.

    Args:
        run: begins in the folder that it is given, and returns the program's exit code.
        folder: where those folders are made.
        patch: sets the environment.
    """
    for step in count(1):
        here = folder / str(step)
        here.mkdir()
        with killed_at(step, here, patch):
            code = run(here)
        if code == 0:
            return
        assert code == -signal.SIGKILL, f"step {step} ended with {code}"
        yield step, here
