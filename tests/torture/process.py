"""One command of gcluster in a process of its own, with what shall go wrong in it.

The process is forked, so that a run costs no start of an interpreter: it is a real one with locks,
streams and an end of its own, and is really killed. What it must not share is made after the fork.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from gcluster.cli import main as cli
from gcluster.cli.commands import VERBS
from gcluster.lifecycle.state import StateStore
from gcluster.stacks.simulated import stamps
from gcluster.stacks.simulated.cloud import Cloud

MOMENTS = (
    (StateStore, ("put_new", "put", "delete")),
    (Cloud, ("list", "create", "delete")),
    (stamps, ("_append",)),
)
"""Every write of state, every call to a site and every stamp: each is passed before and after."""
LIMIT_S = 120
"""Longest that a command may take; the harness then calls it hung."""

Injection = Callable[[], None]
"""Is called in the forked process before the command runs there."""


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a command ended, and what it said."""

    words: tuple[str, ...]
    code: int | None
    """Exit code; None: it was killed, or is stopped."""
    out: str
    err: str
    pid: int
    is_hung: bool = False
    diagnostics: tuple[dict[str, Any], ...] = field(default=())
    """Of its JSON document, where that has any."""

    @property
    def hints(self) -> tuple[str, ...]:
        """What its errors say to do next."""
        return tuple(d.get("hint", "") for d in self.diagnostics if d.get("severity") == "error")


def run(words: Iterable[str], folder: Path, inject: Iterable[Injection] = ()) -> Ended:
    """Run a command to its end, its kill or its stop."""
    command = tuple(words)
    pid = _fork(command, folder, tuple(inject))
    return finish(command, pid, folder)


def finish(command: tuple[str, ...], pid: int, folder: Path) -> Ended:
    """Wait for a command that was started or let go on."""
    until, status, found = time.monotonic() + LIMIT_S, 0, 0
    while not found and time.monotonic() < until:
        found, status = os.waitpid(pid, os.WNOHANG | os.WUNTRACED)
        if not found:
            time.sleep(0.002)
    is_hung = not found
    if is_hung:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    out = (folder / "out").read_text(encoding="utf-8", errors="replace")
    return Ended(
        words=command,
        code=os.WEXITSTATUS(status) if found and os.WIFEXITED(status) else None,
        out=out,
        err=(folder / "err").read_text(encoding="utf-8", errors="replace"),
        pid=pid if found and os.WIFSTOPPED(status) else 0,
        is_hung=is_hung,
        diagnostics=_diagnostics(out),
    )


def go_on(stopped: Ended, folder: Path) -> Ended:
    """Let a stopped command go on, and wait for its end."""
    os.kill(stopped.pid, signal.SIGCONT)
    return finish(stopped.words, stopped.pid, folder)


def at_moment(
    number: int,
    act: Callable[[], None],
    moments: Iterable[tuple[Any, Iterable[str]]] = MOMENTS,
) -> None:
    """Have something happen at the numbered moment of this process."""
    passed = 0

    def moment() -> None:
        nonlocal passed
        passed += 1
        if passed == number:
            act()

    def around(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            moment()
            answer = method(*args, **kwargs)
            moment()
            return answer

        return call

    for owner, names in moments:
        for name in names:
            setattr(owner, name, around(getattr(owner, name)))


@cache
def _import_all() -> None:
    """Import what commands import when they are called: each process would do it again."""
    for verb in VERBS:
        import_module(verb.module, "gcluster.cli")
    for name in ("obstore", "obstore.store", "gcluster.stacks.simulated.provider"):
        import_module(name)
    gc.collect()
    gc.freeze()


def _fork(words: tuple[str, ...], folder: Path, inject: tuple[Injection, ...]) -> int:
    _import_all()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        _be(words, folder, inject)
    return pid


def _be(words: tuple[str, ...], folder: Path, inject: tuple[Injection, ...]) -> NoReturn:
    """Be the command; never return into the harness."""
    code = 1
    try:
        for number, name in ((1, "out"), (2, "err")):
            opened = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(opened, number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)
        os.chdir(folder)
        for name in ("data", "config", "cache", "runtime"):
            variable = "XDG_RUNTIME_DIR" if name == "runtime" else f"XDG_{name.upper()}_HOME"
            os.environ[variable] = str(folder / name)
            (folder / name).mkdir(mode=0o700, exist_ok=True)
        sys.argv = ["gcluster", *words]
        for each in inject:
            each()
        try:
            cli.main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        except BaseException:  # noqa: BLE001  # what would be a traceback is to be seen as one
            import traceback  # noqa: PLC0415

            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _diagnostics(out: str) -> tuple[dict[str, Any], ...]:
    try:
        document = json.loads(out)
    except ValueError:
        return ()
    found = document.get("diagnostics", []) if isinstance(document, dict) else []
    return tuple(each for each in found if isinstance(each, dict))
