"""kubectl of this machine, with the kubeconfig in the cluster's folder."""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

from ...ssh import Answer, SshResult, Unreachable
from ..kubectl import Kubectl
from .login import FILE, KUBECTL


class Here:
    """This machine as a way to the API (`Way`)."""

    name = "this machine"

    def __init__(self, folder: Path) -> None:
        """Use the kubeconfig in a cluster's folder; nothing is run yet."""
        self._folder = folder

    def run(self, arguments: Sequence[str], *, stdin: str | None, timeout_s: float) -> Answer:
        """Run kubectl to its end; see `Way`."""
        if (lacking := self._lacking()) is not None:
            return lacking
        try:
            done = subprocess.run(
                self._command(arguments),
                input=stdin or "",
                capture_output=True,
                text=True,
                errors="replace",
                timeout=timeout_s,
                check=False,
                env=self._environment(),
            )
        except subprocess.TimeoutExpired:
            return Unreachable(reason=f"kubectl gave no answer within {timeout_s:.0f} s")
        except FileNotFoundError:
            return _no_kubectl()
        return SshResult(returncode=done.returncode, stdout=done.stdout, stderr=done.stderr)

    def stream(
        self, arguments: Sequence[str], take: Callable[[str], None], *, timeout_s: float
    ) -> Answer:
        """Run kubectl and hand over its output line by line; see `Way`."""
        if (lacking := self._lacking()) is not None:
            return lacking
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
            try:
                process = subprocess.Popen(
                    self._command(arguments),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    text=True,
                    errors="replace",
                    env=self._environment(),
                )
            except FileNotFoundError:
                return _no_kubectl()
            return _followed(process, errors, take, timeout_s)

    def _lacking(self) -> Unreachable | None:
        if (self._folder / FILE).is_file():
            return None
        return Unreachable(reason="the stack has told no control plane yet")

    def _command(self, arguments: Sequence[str]) -> list[str]:
        return [KUBECTL, f"--kubeconfig={self._folder / FILE}", *arguments]

    def _environment(self) -> dict[str, str]:
        # Discovery is kept with the cluster, and goes with it.
        return {**os.environ, "KUBECACHEDIR": str(self._folder / "kubectl-cache")}


def kubectl_here(folder: Path) -> Kubectl:
    """Return the API of a cluster whose folder on this machine has its kubeconfig."""
    return Kubectl.by(Here(folder))


def run_words(words: Callable[[str], str], folder: Path, timeout_s: float = 120) -> str:
    """Run shell words that ask kubectl, given its kubeconfig; return what they printed.

    A program that is missing, or an API that is silent, prints nothing.
    """
    try:
        done = subprocess.run(
            ["sh", "-s"],
            input=words(str(folder / FILE)),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def _followed(
    process: subprocess.Popen[str], errors: IO[str], take: Callable[[str], None], timeout_s: float
) -> Answer:
    late = threading.Event()

    def give_up() -> None:
        late.set()
        process.kill()

    timer = threading.Timer(timeout_s, give_up)
    timer.start()
    try:
        with process:
            for line in process.stdout or ():
                take(line)
            status = process.wait()
    except BaseException:
        process.kill()
        raise
    finally:
        timer.cancel()
    if late.is_set():
        return Unreachable(reason=f"kubectl came to no end within {timeout_s:.0f} s")
    errors.seek(0)
    return SshResult(returncode=status, stdout="", stderr=errors.read())


def _no_kubectl() -> Unreachable:
    return Unreachable(reason="kubectl is not on the PATH")
