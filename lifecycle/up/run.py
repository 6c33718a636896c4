"""One run of a command that makes changes: its id, its artifacts, and its entry in the journal."""

from __future__ import annotations

import os
import secrets
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from ..cluster import places
from ..cluster.cluster import Cluster
from ..cluster.outcome import Exit, LifecycleError
from ..cluster.shared_credentials import store_host_keys
from ..secrets.ciphertexts import finish_interrupted_removal
from ..state import HeldLock, RunFinished, RunStarted
from ..state.audit.artifacts import store_artifacts
from ..state.audit.trail import exported
from ..state.process import pipeline_commit


class Run:
    """Context manager: RunStarted on entry, RunFinished on exit, whatever the way out.

    A run that is killed leaves a start without an end: the journal calls it interrupted.
    """

    def __init__(self, cluster: Cluster, command: str, lock: HeldLock) -> None:
        """Prepare the run; nothing is written before it is entered."""
        self.id = f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{secrets.token_hex(3)}"
        self.cluster = cluster
        self.command = command
        self.lock = lock
        self._exit = Exit.FAILED
        self._outcome = "failed"
        self._exports = ExitStack()

    @property
    def directory(self) -> Path:
        """Directory of this run's artifacts."""
        return self.cluster.run_directory(self.id)

    def finish(self, exit_code: Exit) -> None:
        """Set the run's result; without it, it failed."""
        self._exit = exit_code
        self._outcome = "ok" if exit_code is Exit.OK else exit_code.name.lower()

    def __enter__(self) -> Self:
        """Write the start of the run."""
        started = RunStarted(
            command=self.command,
            spec_hash=self.cluster.spec_hash,
            commit=commit_of(self.cluster.spec_path) or pipeline_commit(),
            why=self.cluster.why,
        )
        with ExitStack() as exports:
            exports.enter_context(exported(self.cluster))
            self.cluster.vault.keyring.invalidate()
            if self.command != "down":  # it continues with nothing, and must end without a key
                finish_interrupted_removal(self.cluster.store, self.cluster.vault.keyring)
            self.cluster.events.bind(run=self.id, epochs=self.lock.epochs)
            self.cluster.events.append(started)
            self._exports = exports.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Write the end of the run."""
        with self._exports:
            self._end(kind, error)

    def _end(self, kind: type[BaseException] | None, error: BaseException | None) -> None:
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            self._exit, self._outcome = Exit.INTERRUPTED, "interrupted"
        elif isinstance(error, LifecycleError):
            self._exit, self._outcome = error.exit_code, "failed"
        store_host_keys(self.cluster)
        artifacts = places.run_path(self.cluster.id, self.id)  # gone, where `down` removed it
        store_artifacts(self.cluster.store, self.id, artifacts)
        ended = RunFinished(outcome=self._outcome, exit_code=int(self._exit))
        self.lock.last_event = self.cluster.events.append(ended).seq


_LIMIT_S = 5
_PIPELINES = ("GITHUB_SHA", "CI_COMMIT_SHA")
"""Variables of pipelines with the commit where the checkout has no history: GitHub, GitLab."""


def commit_of(spec: Path) -> str:
    """Return the commit of a spec file; with "+changes" where the file differs.

    "": it is in none, or git is missing.
    """
    commit = _git(spec.parent, "rev-parse", "HEAD")
    if not commit:
        return next((os.environ[name] for name in _PIPELINES if os.environ.get(name)), "")
    if not _git(spec.parent, "ls-files", "--", spec.name):
        return ""
    changed = _git(spec.parent, "status", "--porcelain", "--", spec.name)
    return f"{commit}+changes" if changed else commit


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=_LIMIT_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
