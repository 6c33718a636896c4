"""How a command ends: every error becomes a message and one of the exit codes of the table."""

from __future__ import annotations

import errno
import os
import shlex
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

import typer
from typer.exceptions import TyperException

from ..lifecycle.cluster.outcome import Exit
from ..schemas.diagnostics import Diagnostic, Severity
from .commands import BY_NAME
from .console import stderr
from .render.diagnostics import diagnostics_text
from .render.document import document

FORMAT = "gcluster.format"
"""Key of the context's shared store under which `--format` is kept for messages of errors."""


class End:
    """The exit code of a verb, once it is known."""

    code: Any = None


@contextmanager
def as_exit_code(ctx: Any) -> Iterator[End]:
    """Turn what a verb raises into a message and an exit code; typer's own errors go through."""
    end = End()
    try:
        yield end
    except (typer.Exit, typer.Abort, TyperException, BrokenPipeError):
        raise
    except KeyboardInterrupt:
        end.code = _interrupted(ctx)
    except Exception as error:  # noqa: BLE001  # the last place where a traceback can be avoided
        end.code = _failed(error, ctx.meta.get(FORMAT, "text"))


def run(main: Callable[[], Any]) -> int:
    """Run typer's main, return the exit code; a closed pipe is no error, a full disk is one."""
    try:
        code = main()
        sys.stdout.flush()
    except TyperException as error:
        return _usage_error(error)
    except BrokenPipeError:
        _drop_output()  # the reader of the pipe is gone
        return 1
    except OSError as error:
        _drop_output()
        with suppress(OSError):  # where the messages are written to is full, too
            _report((_system_error(error),), "text", {}, Exit.FAILED)
        return Exit.FAILED
    return int(code or 0)


def _drop_output() -> None:
    """Let what is still to be written lead nowhere: the interpreter's last flush must not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def catch_signals() -> None:
    """Treat SIGTERM as Ctrl-C, and confirm the first of either on the terminal."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, signal.default_int_handler)
        os.write(2, b"\nstopping after the current step\n")
        raise KeyboardInterrupt

    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, stop)


def _interrupted(ctx: Any) -> Exit:

    verb = BY_NAME.get(ctx.invoked_subcommand or "")
    again = shlex.join(["gcluster", *(ctx.obj or [])])
    hint = f"{'resume with' if verb is not None and verb.resumable else 'run it again'}: {again}"
    _report(
        (_diagnostic("GC940", "interrupted", hint=hint),), ctx.meta.get(FORMAT, "text"), {}, 130
    )
    return Exit.INTERRUPTED


def _failed(error: Exception, fmt: str) -> Exit:

    if os.environ.get("GCLUSTER_DEBUG"):
        traceback.print_exception(error)
    code, sources = Exit.FAILED, {}
    diagnostics: tuple[Diagnostic, ...] = getattr(error, "diagnostics", ())
    if diagnostics:  # those of LifecycleError, ProviderError, CatalogError
        code = getattr(error, "exit_code", Exit.FAILED)
        loaded = getattr(error, "loaded", None)
        sources = {loaded.file: loaded.text} if loaded is not None else {}
    elif isinstance(error, OSError) and error.strerror:
        diagnostics = (_system_error(error),)
    else:
        diagnostics = (_internal(error),)
    _report(diagnostics, fmt, sources, code)
    return code


_PUT_RIGHT = {
    errno.ENOSPC: "make room",
    errno.EDQUOT: "make room, or have the quota raised",
    errno.EROFS: "make it writable",
    errno.EACCES: "give this user the right to it",
    errno.EPERM: "give this user the right to it",
}
"""What helps against an error of the operating system."""


def _system_error(error: OSError) -> Diagnostic:
    place = f": {error.filename}" if error.filename else ""
    first = _PUT_RIGHT.get(error.errno or 0, "put that right")
    hint = f"{first}, then run the same command again: it goes on where it ended"
    return _diagnostic("GC948", f"{error.strerror}{place}", hint=hint)


def _internal(error: Exception) -> Diagnostic:
    words = " ".join(str(error).split())
    return _diagnostic(
        "GC949",
        f"internal error: {type(error).__name__}{f': {words}' if words else ''}; please report it",
        hint="the same command with GCLUSTER_DEBUG=1 in its environment prints what to send along",
    )


def _diagnostic(code: str, summary: str, *, hint: str = "") -> Diagnostic:

    return Diagnostic(code=code, severity=Severity.ERROR, summary=summary, hint=hint)


def _report(
    diagnostics: tuple[Diagnostic, ...], fmt: str, sources: dict[str, str], code: int
) -> None:
    """Write errors: JSON as the one document on stdout, text on stderr."""
    if fmt == "json":
        value = {"ok": False, "exit_code": int(code), "diagnostics": diagnostics}
        sys.stdout.write(f"{document(value)}\n")
        return

    sys.stdout.flush()
    console = stderr()
    text = console.fit(diagnostics_text(diagnostics, console, sources))
    sys.stderr.write(f"{text}\n")


def _usage_error(error: TyperException) -> int:
    """Report what is wrong with the command line; bare `gcluster` gets the help."""
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        sys.stderr.write(f"{error.format_message()}\n")
        return 64
    path = context.command_path if context is not None else "gcluster"
    return _usage(error.format_message(), f"{path} --help")


def _usage(message: str, hint: str) -> int:

    _report((_diagnostic("GC941", message, hint=hint),), "text", {}, Exit.USAGE)
    return Exit.USAGE
