"""Measures each shared storage of a cluster from its nodes: one alone, then some at once."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic, time
from typing import Any

import msgspec

from ....inventory.hosts import Host
from ....schemas.derived.hostlist import fold
from ....schemas.derived.storage import Mounts, mount_point, write_bytes_per_s
from ....schemas.diagnostics import Diagnostic, Severity
from ....schemas.spec import ClusterSpec, LocalSite, ScratchStorage
from ...cluster.cluster import Cluster
from ...cluster.hosts import existing_hosts
from ...cluster.outcome import Exit, failure
from ...cluster.progress import Finding, Reporter, StageFinished, StageStarted
from ...nodes.ssh import SshSession, Unreachable
from ...nodes.ssh.arguments import as_root
from ...smoke.run import launcher_of
from ...state import acquire
from ...status.slurm import last_error_line
from ...up.run import Run
from .figures import Rates, StorageFigures, StorageReport, definition, keep
from .node_program import LEFT

STAGE = "storage"
MOST_NODES = 16
"""Nodes that are measured at once: enough to see what one node can't reach, and few enough that
other nodes' jobs keep most of the storage, however many there are."""
THREADS = 8
"""Files of a node at once: one for each GPU of most machines, as checkpoints are written."""
SECONDS = 8.0
"""Length of a phase: past what servers take into their memory at first."""
METADATA_SECONDS = 4.0
FILES = 2000
"""Small files of a thread at most."""
_MOST_BYTES = 16 << 30
"""Of one file; less where the storage's room is small."""
_SHARE_OF_ROOM = 0.2
_START_S = 2.0
"""Between the request and the common start, for connections of all nodes."""
_PATIENCE_S = 120.0
"""Beyond a phase's length, until what was written is on the storage."""
PROGRAM = Path(__file__).with_name("node_program.py")

OnNodes = Callable[[Mapping[str, Mapping[str, object]], float], Mapping[str, dict[str, Any]]]
"""Runs a phase with the settings of each node; returns its answer, with `error` where it failed."""


def run_storage_benchmark(
    cluster: Cluster, report: Reporter, *, user: str | None = None
) -> StorageReport:
    """Measure all shared storage on idle nodes, and keep the result in the cluster's state.

    Args:
        cluster: whose storage; it is locked meanwhile.
        report: called with each storage as a stage.
        user: who writes the files; None: root, whose rights NFS may take away.

    Raises:
        LifecycleError: the spec has no storage that several nodes share (GC1232), or no node can
            be reached by SSH (GC930).
    """
    spec = cluster.spec
    shared = shared_storage(spec)
    if not shared:
        raise failure(
            "GC1232",
            f"{spec.name} has no storage that its compute nodes share and may write",
            hint="storage: {scratch: {type: nfs, mount: /scratch, server: head}}",
            exit_code=Exit.USAGE,
        )
    nodes = existing_hosts(cluster).real
    cluster.identify()
    with (
        SshSession(cluster.workdir) as session,
        acquire(cluster.store, tuple(spec.sites), reason="smoke --storage") as lock,
        Run(cluster, "smoke", lock) as run,
    ):
        reached = tuple(h for h in nodes.with_role("compute") if h.connection == "ssh")
        if not reached:
            raise failure("GC930", "no compute node can be reached by SSH: nothing is measured")
        session.trust(reached)
        idle, busy = launcher_of(spec, nodes, session, cluster.catalog, report).idle(reached)
        found = {}
        for name in shared:
            report(StageStarted(name=f"{STAGE} {name}"))
            began = monotonic()
            figures = _measured(spec, name, reached, idle, session, user)
            found[name] = figures
            report(
                StageFinished(
                    name=f"{STAGE} {name}",
                    ok=not figures.problem,
                    summary=f"on {figures.nodes}" if figures.nodes else "",
                    seconds=monotonic() - began,
                )
            )
            if figures.problem:
                report(Finding(diagnostic=_unmeasured(name, figures)))
        result = StorageReport(
            cluster=spec.name, spec_hash=cluster.spec_hash, storage=found, left_out=fold(busy)
        )
        keep(cluster.store, result)
        run.finish(Exit.OK if result.passed else Exit.REFUSED)
        return result


def shared_storage(spec: ClusterSpec) -> tuple[str, ...]:
    """Return the storage that compute nodes mount together and may write, in spec order."""
    mounts = Mounts(spec.storage, spec.pools)
    return tuple(
        name
        for name, storage in spec.storage.items()
        if not isinstance(storage, ScratchStorage)
        and not getattr(storage, "read_only", False)
        and any(spec.pools[pool].is_compute for pool in mounts.mounted_by(name))
    )


def spread(hosts: Sequence[Host], most: int = MOST_NODES) -> tuple[Host, ...]:
    """Return at most so many hosts, evenly from all of them: of all racks and switches."""
    count = min(most, len(hosts))
    return tuple(hosts[index * len(hosts) // count] for index in range(count))


def _measured(  # noqa: PLR0917  # what a measurement needs, each of another kind
    spec: ClusterSpec,
    name: str,
    reached: Sequence[Host],
    idle: Sequence[Host],
    session: SshSession,
    user: str | None,
) -> StorageFigures:
    storage = spec.storage[name]
    pools = set(Mounts(spec.storage, spec.pools).mounted_by(name))
    mounting = [host for host in reached if host.pool in pools]
    chosen = spread([host for host in idle if host.pool in pools])
    about = StorageFigures(
        mount=mount_point(storage),
        time=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        nodes=fold(host.name for host in chosen),
        node_count=len(chosen),
        mounted_by=len(mounting),
        is_shared_machine=all(
            isinstance(spec.sites[spec.pools[host.pool].site], LocalSite) for host in mounting
        ),
        nominal_bytes_per_s=write_bytes_per_s(storage),
        definition=definition(storage),
    )
    if not chosen:
        return msgspec.structs.replace(about, problem="no node that mounts it is idle")
    nodes = _Nodes(session, {host.name: host for host in chosen}, user)
    return measure(about, [host.name for host in chosen], nodes.run, user=user)


def _unmeasured(name: str, figures: StorageFigures) -> Diagnostic:
    refused = "ermission denied" in figures.problem
    return Diagnostic(
        code="GC1231",
        severity=Severity.ERROR,
        summary=f"storage {name} at {figures.mount} was not measured: {figures.problem}",
        hint="name a user who may write there: --user NAME" if refused else "",
    )


class _Nodes:
    """The nodes of a measurement, by SSH."""

    def __init__(self, session: SshSession, hosts: Mapping[str, Host], user: str | None) -> None:
        self._session, self._hosts, self._user = session, hosts, user
        self._program = PROGRAM.read_text(encoding="utf-8")

    def run(
        self, settings: Mapping[str, Mapping[str, object]], limit_s: float
    ) -> Mapping[str, dict[str, Any]]:
        """Run a phase on several nodes at once; see `OnNodes`."""
        with ThreadPoolExecutor(len(settings)) as pool:
            answers = pool.map(lambda name: self._one(name, settings[name], limit_s), settings)
            return dict(zip(settings, answers, strict=True))

    def _one(self, name: str, settings: Mapping[str, object], limit_s: float) -> dict[str, Any]:
        host = self._hosts[name]
        words = ["python3", "-", json.dumps(settings)]
        as_user = ["runuser", "-u", self._user, "--"] if self._user else []
        line = as_root(host, [*as_user, *words])
        answer = self._session.run(host, line, stdin=self._program, timeout_s=limit_s)
        if isinstance(answer, Unreachable):
            return {"error": answer.reason}
        if answer.returncode != 0:
            return {"error": last_error_line(answer)}
        found: dict[str, Any] = json.loads(answer.stdout)
        return found


def measure(
    about: StorageFigures, names: Sequence[str], on_nodes: OnNodes, *, user: str | None = None
) -> StorageFigures:
    """Return the figures of one storage.

    Args:
        about: what is known of it before.
        names: nodes that take part, one or more; they may be used.
        on_nodes: runs a phase on some of them.
        user: who writes; None: root.
    """
    bench = _Benchmark(about.mount, names, on_nodes, user)
    try:
        kind = bench.prepare()
        alone = bench.rates(names[:1], names[1:2] or names[:1])
        together = bench.rates(names, names) if len(names) > 1 else alone
    except _PhaseError as error:
        return msgspec.structs.replace(about, problem=str(error))
    finally:
        bench.remove()
    return msgspec.structs.replace(
        about, kind=kind, alone=alone, together=together, is_direct=bench.is_direct
    )


class _PhaseError(Exception):
    """A phase that a node could not do; the text says which and why."""


class _Benchmark:
    """The phases on one storage, in a folder of its own."""

    def __init__(
        self, mount: str, names: Sequence[str], on_nodes: OnNodes, user: str | None
    ) -> None:
        self._mount, self._names, self._on_nodes = mount, names, on_nodes
        label = f"{LEFT}{secrets.token_hex(4)}"
        places = [mount, *([f"{mount}/{user}"] if user else [])]
        self._folders = [f"{place}/{label}" for place in places]
        self._is_ready = False
        self._offsets: dict[str, float] = {}
        """Of the nodes' clocks to this machine's, within the time of an SSH command."""
        self._most_bytes = _MOST_BYTES
        self.is_direct = True

    def prepare(self) -> str:
        """Make the folder on the storage, seen by all nodes; return the file system's type."""
        first = self._phase("prepare", {self._names[0]: "first"})[self._names[0]]
        self._folders = [str(first["folder"])]
        self._is_ready = True
        answers = self._phase("prepare", {name: name for name in self._names})
        asked = time()
        self._offsets = {name: answer["clock"] - asked for name, answer in answers.items()}
        room = _SHARE_OF_ROOM * min(answer["free"] for answer in answers.values())
        self._most_bytes = int(min(_MOST_BYTES, room / len(self._names) / THREADS))
        return str(first["kind"])

    def rates(self, writers: Sequence[str], readers: Sequence[str]) -> Rates:
        """Return what some nodes reach, each reader on the files of another one where it can."""
        label = "alone" if len(writers) == 1 else "together"
        own = {name: f"{label}-{name}" for name in writers}
        shifted = [*writers[1:], *writers[:1]]
        other = {name: own[of] for name, of in zip(readers, shifted, strict=True)}
        return Rates(
            write_bytes_per_s=self._rate("write", own, SECONDS, self._most_bytes),
            read_bytes_per_s=self._rate("read", other, SECONDS, self._most_bytes),
            creates_per_s=self._rate("create", own, METADATA_SECONDS, FILES),
            stats_per_s=self._rate("stat", other, METADATA_SECONDS, FILES),
            unlinks_per_s=self._rate("unlink", own, METADATA_SECONDS, FILES),
        )

    def remove(self) -> None:
        """Remove what was written."""
        if self._is_ready:
            self._on_nodes(self._settings("remove", {self._names[0]: ""}), _PATIENCE_S)

    def _rate(self, phase: str, parts: Mapping[str, str], seconds: float, most: int) -> float:
        """Return what nodes did in a second, from the first one's start to the last one's end.

        Args:
            phase: what they do.
            parts: node -> the files that it does it with.
            seconds: how long.
            most: bytes or files of each thread.
        """
        answers = self._phase(phase, parts, seconds=seconds, most=most)
        if phase in {"write", "read"}:
            self.is_direct &= all(answer["direct"] for answer in answers.values())
        began = min(answer["began"] - self._offsets[name] for name, answer in answers.items())
        ended = max(answer["ended"] - self._offsets[name] for name, answer in answers.items())
        return float(sum(answer["count"] for answer in answers.values()) / (ended - began))

    def _settings(
        self,
        phase: str,
        parts: Mapping[str, str],
        *,
        seconds: float = 0,
        most: int = 0,
    ) -> dict[str, dict[str, object]]:
        start = time() + _START_S
        return {
            name: {
                "phase": phase,
                "mount": self._mount,
                "folders": self._folders,
                "part": part,
                "threads": THREADS,
                "seconds": seconds,
                "most": most,
                "start": start + self._offsets[name] if seconds else 0,
            }
            for name, part in parts.items()
        }

    def _phase(
        self,
        phase: str,
        parts: Mapping[str, str],
        *,
        seconds: float = 0,
        most: int = 0,
    ) -> Mapping[str, dict[str, Any]]:
        settings = self._settings(phase, parts, seconds=seconds, most=most)
        answers = self._on_nodes(settings, _START_S + seconds + _PATIENCE_S)
        failed = {name: answer["error"] for name, answer in answers.items() if "error" in answer}
        if failed:
            name, why = next(iter(failed.items()))
            more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
            raise _PhaseError(f"{phase} on {name}{more}: {why}")
        return answers
