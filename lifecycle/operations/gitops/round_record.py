"""The record of a round while it is made: phases with their times, pauses, and what is reported."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import msgspec

from ....schemas.diagnostics import Diagnostic
from ...cluster.cluster import Cluster
from ...cluster.outcome import Exit, LifecycleError
from ...cluster.progress import Progress, Reporter, StageFinished
from ...state import StateStore
from .act import Acted, pause_s
from .git import Head
from .record import ControllerRecord, Followed, Phase, write_followed, write_record

_EXITS: dict[Phase, Exit] = {
    "failed": Exit.FAILED,
    "invalid": Exit.SPEC,
    "refused": Exit.REFUSED,
    "locked": Exit.LOCKED,
    "waiting": Exit.PENDING,
    "paused": Exit.PENDING,
    "orphaned": Exit.PENDING,
}
"""The worst first."""


class ControllerEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a controller's output."""

    what: str
    """"repository", "cluster", "stage" or "end"."""
    cluster: str = ""
    phase: str = ""
    reason: str = ""
    commit: str = ""
    diagnostics: tuple[Diagnostic, ...] = ()


class RoundRecord:
    """Records each cluster's result; reports changes; stored at the end of a round."""

    def __init__(
        self,
        record: ControllerRecord,
        store: StateStore,
        now: Callable[[], datetime],
        emit: Callable[[ControllerEvent], None],
    ) -> None:
        """Begin with what was known before."""
        self.record = record
        self.now = now
        self._store = store
        self._emit = emit
        self._clusters = dict(record.clusters)
        self._seen: set[str] = set()
        self._tree = Path()

    @property
    def known(self) -> dict[str, Followed]:
        """Every cluster that was ever followed and not let go."""
        return self._clusters

    def unread(self, problem: tuple[Diagnostic, ...], next_try: datetime) -> None:
        """Note that the repository could not be read, and keep that."""
        failures = self.record.failures + 1
        if problem != self.record.problem:
            self._emit(
                ControllerEvent(what="repository", reason=problem[0].summary, diagnostics=problem)
            )
        self.record = msgspec.structs.replace(
            self.record, problem=problem, failures=failures, next_try=next_try
        )
        self.keep()

    def read(self, head: Head, tree: Path, problem: tuple[Diagnostic, ...]) -> None:
        """Note a commit; one with a problem is kept at once, for nothing else comes of it."""
        self._tree = tree.resolve()
        if head.commit != self.record.commit or problem != self.record.problem:
            summary = problem[0].summary if problem else head.title
            event = ControllerEvent(
                what="repository", reason=summary, commit=head.commit, diagnostics=problem
            )
            self._emit(event)
        self.record = msgspec.structs.replace(
            self.record,
            commit=head.commit,
            title=head.title,
            read_at=self.now(),
            problem=problem,
            failures=0,
            next_try=None,
        )
        if problem:
            self.keep()

    def note(self, cluster: Cluster, head: Head, acted: Acted, *, applied: bool = False) -> None:
        """Note a cluster's phase; failures and pauses of an earlier try are over with success."""
        before = self._clusters.get(cluster.name)
        done = acted.phase in {"synced", "down"}
        was_tried = before is not None and before.tried == cluster.spec_hash and not done
        self._put(
            cluster,
            head,
            acted,
            applied=head.commit if applied else before.applied if before is not None else "",
            failures=before.failures if before is not None and was_tried else 0,
            next_try=before.next_try if before is not None and was_tried else None,
        )

    def failed(self, cluster: Cluster, head: Head, acted: Acted, chance: float) -> None:
        """Note a try that did not end well: the next one comes after a pause, longer each time."""
        before = self._clusters.get(cluster.name)
        again = before is not None and before.tried == cluster.spec_hash
        failures = (before.failures if before is not None and again else 0) + 1
        self._put(
            cluster,
            head,
            acted,
            applied=before.applied if before is not None else "",
            failures=failures,
            next_try=self.now() + timedelta(seconds=pause_s(failures, chance)),
        )

    def is_due(self, cluster: Cluster) -> bool:
        """Return whether a cluster may be tried now: a new spec is at once."""
        before = self._clusters.get(cluster.name)
        if before is None or before.next_try is None or before.tried != cluster.spec_hash:
            return True
        return self.now() >= before.next_try

    def keep_failed(self, cluster: Cluster, head: Head) -> None:
        """Leave a cluster as it was noted when it failed."""
        before = self._clusters[cluster.name]
        self._clusters[cluster.name] = msgspec.structs.replace(before, commit=head.commit)
        self._seen.add(cluster.name)

    def is_well(self, name: str) -> bool:
        """Return whether this cluster allows changes to clusters of the next step."""
        followed = self._clusters.get(name)
        return followed is not None and followed.phase in {"synced", "down"}

    def spec_removed(self, name: str, acted: Acted) -> None:
        """Note a cluster that has no spec any more."""
        before = self._clusters[name]
        self._keep(msgspec.structs.replace(before, spec=""), acted)

    def unfollow(self, name: str, reason: str) -> None:
        """Follow a cluster no more."""
        self._emit(ControllerEvent(what="cluster", cluster=name, phase="down", reason=reason))
        self._clusters.pop(name, None)

    def end(self, name: str, words: str) -> None:
        """Note that a cluster ends by itself; "": it doesn't, for now."""
        before = self._clusters[name]
        if before.ends != words:
            self._emit(
                ControllerEvent(what="end", cluster=name, reason=words or "nothing ends it soon")
            )
            self._clusters[name] = msgspec.structs.replace(before, ends=words)

    def reporter(self, name: str) -> Reporter:
        """Return the reporter of a run's stages."""

        def report(progress: Progress) -> None:
            if isinstance(progress, StageFinished):
                summary = f"{progress.name}: {progress.summary}"
                self._emit(ControllerEvent(what="stage", cluster=name, reason=summary))

        return report

    def keep(self) -> None:
        """Store it all."""
        record = msgspec.structs.replace(self.record, clusters=self._clusters)
        write_record(self._store, record)

    def worst(self) -> Exit:
        """Return the exit code that a round ends with."""
        phases = {self._clusters[name].phase for name in self._seen if name in self._clusters}
        return next((code for phase, code in _EXITS.items() if phase in phases), Exit.OK)

    def _put(
        self,
        cluster: Cluster,
        head: Head,
        acted: Acted,
        *,
        applied: str,
        failures: int,
        next_try: datetime | None,
    ) -> None:
        followed = Followed(
            name=cluster.name,
            spec=str(cluster.spec_path).removeprefix(f"{self._tree}/"),
            state_url=cluster.state_url,
            phase=acted.phase,
            since=self.now(),
            commit=head.commit,
            applied=applied,
            failures=failures,
            tried=cluster.spec_hash,
            next_try=next_try,
            ends=before.ends if (before := self._clusters.get(cluster.name)) else "",
        )
        kept = self._keep(followed, acted)
        try:
            write_followed(cluster.store, kept)
        except LifecycleError as error:  # a state that is away: the controller's own record has it
            summary = error.diagnostics[0].summary
            self._emit(ControllerEvent(what="cluster", cluster=cluster.name, reason=summary))

    def _keep(self, followed: Followed, acted: Acted) -> Followed:
        """Keep a cluster's new part; reported and dated where it differs."""
        before = self._clusters.get(followed.name)
        same = before is not None and (before.phase, before.reason) == (acted.phase, acted.reason)
        kept = msgspec.structs.replace(
            followed,
            phase=acted.phase,
            reason=acted.reason,
            diagnostics=acted.diagnostics,
            since=before.since if before is not None and same else self.now(),
        )
        if not same:
            self._emit(
                ControllerEvent(
                    what="cluster",
                    cluster=kept.name,
                    phase=kept.phase,
                    reason=kept.reason,
                    commit=kept.commit,
                    diagnostics=kept.diagnostics,
                )
            )
        self._clusters[kept.name] = kept
        self._seen.add(kept.name)
        return kept
