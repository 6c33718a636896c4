"""An acceptance in the cluster's state: its plan, each result as it comes, and its report.

A killed run has stored its results so far; the next one continues with what is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TypeVar

import msgspec

import gcluster

from ....inventory.accounting.records import SMOKE_USER
from ....inventory.hosts import ClusterInventory
from ....schemas.derived.hostlist import fold
from ....schemas.spec import ClusterSpec
from ....schemas.structure.decoding import decode_json
from ...cluster.cluster import Cluster
from ...cluster.outcome import Exit, failure
from ...state import StateStore
from ..selection import chosen
from .facts.counters import Counters
from .facts.inventory import NodeParts
from .jobs import job_name
from .reading.result import Figure
from .reading.wiring import Cable
from .table import acceptance_tests
from .targets import MIB, Want

PREFIX = "acceptance"
"""Of the keys in the state."""
_T = TypeVar("_T")


class Exclusion(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes that take no part, and who answers for it."""

    nodes: str
    """As a host range."""
    reason: str
    accepted_by: str
    time: str


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What an acceptance was begun with; it stays so until its end."""

    number: int
    begun: str
    """UTC."""
    spec_hash: str
    gcluster: str
    tests: tuple[str, ...]
    repetitions: int
    soak_s: float
    path: str
    """Directory that storage is measured in; "": none was named."""
    mib: int
    account: str
    """Account of the jobs."""
    wiring: dict[str, dict[str, Cable]] = {}
    """Node -> device -> the far end of its cable, as the team's plan has it."""
    container: str = ""
    """Image that training runs in; "": none was named."""
    drilled: str = ""
    """Nodes that were named for drills, as a host range."""
    dcgm_level: int = 3
    """Of DCGM's diagnostics: 3 takes about half an hour, 4 one to two hours."""
    nodes: str = ""
    """The requested nodes, as a host range; "": all compute nodes."""
    exclusions: tuple[Exclusion, ...] = ()


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Requested settings; None: as in the unfinished acceptance, else the default."""

    tests: tuple[str, ...] | None = None
    nodes: tuple[str, ...] | None = None
    repetitions: int | None = None
    soak_s: float | None = None
    path: str | None = None
    mib: int | None = None
    account: str | None = None
    dcgm_level: int | None = None
    wiring: dict[str, dict[str, Cable]] | None = None
    container: str | None = None
    drilled: tuple[str, ...] | None = None
    exclude: Exclusion | None = None
    wait_s: float = 0
    """Seconds to wait for nodes that jobs hold."""
    new: bool = False
    """Whether an unfinished one is left as it is and another is begun."""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one test for one target in one repetition."""

    test: str
    target: str
    repetition: int
    nodes: str
    """As a host range."""
    ended: str
    """UTC."""
    seconds: float
    command: str
    figures: tuple[Figure, ...] = ()
    failures: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    floor: float | None = None
    floor_reason: str = ""
    stands_in: str = ""
    """What was measured in place of real hardware; "": real hardware was."""

    @property
    def key(self) -> tuple[str, str, int]:
        """See `Want.key`."""
        return self.test, self.target, self.repetition


def now() -> str:
    """Return the time as it is kept: UTC, seconds."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Record:
    """One acceptance of a cluster, by its number."""

    def __init__(self, store: StateStore, number: int) -> None:
        """Hold the place; nothing is read or written yet."""
        self._store, self.number = store, number
        self._at = f"{PREFIX}/{number:06d}"

    @classmethod
    def newest(cls, store: StateStore) -> Record | None:
        """Return the last acceptance that was begun; None: there never was one."""
        numbers = {key.split("/")[1] for key in store.list(PREFIX)}
        return cls(store, int(max(numbers))) if numbers else None

    @property
    def ended(self) -> bool:
        """Whether its report is written."""
        return self._store.get(f"{self._at}/report.json") is not None

    @property
    def plan(self) -> Plan | None:
        """What it was begun with."""
        return self._read("plan", Plan)

    def keep_plan(self, plan: Plan) -> None:
        """Write the plan, or the plan with an exclusion more."""
        self._write("plan", plan)

    def results(self, wants: Iterable[Want]) -> dict[tuple[str, str, int], Result]:
        """Return the results that are stored of what is wanted.

        One over other nodes is none: some were excluded since.
        """
        nodes = {want.key: fold(want.launch.nodes) for want in wants}
        found = {}
        for key in self._store.list(f"{self._at}/results"):
            for result in decode_json(self._store.get(key) or b"[]", list[Result]):
                if nodes.get(result.key) == result.nodes:
                    found[result.key] = result
        return found

    def begun(self) -> Iterator[list[Want]]:
        """Yield what each job was begun for: one of a run that was killed may still go on."""
        for key in self._store.list(f"{self._at}/begun"):
            yield decode_json(self._store.get(key) or b"[]", list[Want])

    def keep_begun(self, wave: Sequence[Want]) -> None:
        """Store what a job is about to be begun for."""
        name = job_name(f"{self.number:06d}", *wave[0].key).rpartition("-")[2]
        self._write(f"begun/{name}", wave)

    def keep_results(self, first: Want, results: list[Result]) -> None:
        """Store the results of one job; of a job over many nodes they are one object."""
        name = job_name(f"{self.number:06d}", *first.key).rpartition("-")[2]
        self._write(f"results/{name}", results)

    @property
    def counters(self) -> Counters | None:
        """The counters of the nodes' ports before the first test."""
        return self._read("counters", Counters)

    def keep_counters(self, counters: Counters) -> None:
        """Store the counters of the beginning."""
        self._write("counters", counters)

    @property
    def parts(self) -> dict[str, NodeParts]:
        """Node -> what it is made of."""
        return self._read("parts", dict[str, NodeParts]) or {}

    def keep_parts(self, parts: dict[str, NodeParts]) -> None:
        """Store what the nodes are made of."""
        self._write("parts", parts)

    def report(self) -> bytes | None:
        """Return the report that was signed; None: it isn't written."""
        return self._store.get(f"{self._at}/report.json")

    def signature(self) -> str:
        """Return the report's signature; "": there is none."""
        return (self._store.get(f"{self._at}/report.json.sig") or b"").decode()

    def keep_report(self, report: bytes, signature: str) -> None:
        """Store the report; the acceptance has ended."""
        self._store.put(f"{self._at}/report.json.sig", signature.encode())
        self._store.put(f"{self._at}/report.json", report)

    def earlier(self) -> Iterator[Record]:
        """Yield the acceptances before this one, the newest first."""
        for number in range(self.number - 1, 0, -1):
            yield Record(self._store, number)

    def _read(self, name: str, kind: type[_T]) -> _T | None:
        content = self._store.get(f"{self._at}/{name}.json")
        return None if content is None else decode_json(content, kind)

    def _write(self, name: str, value: object) -> None:
        self._store.put(f"{self._at}/{name}.json", msgspec.json.encode(value))


def plan_of(cluster: Cluster, number: int, options: Options, hosts: ClusterInventory) -> Plan:
    """Return the plan of a new acceptance.

    Raises:
        LifecycleError: no test (GC1196) or node (GC908) is called so.
    """
    known = {test.name for test in acceptance_tests()}
    for name in options.tests or ():
        if name not in known:
            hint = f"there are {', '.join(sorted(known))}"
            raise failure("GC1196", f'no test is called "{name}"', hint=hint, exit_code=Exit.USAGE)
    if options.path is not None and not options.path.startswith("/"):
        hint = "an absolute path: the nodes have it, not this machine"
        raise failure("GC1196", f"--path {options.path}", hint=hint, exit_code=Exit.USAGE)
    _refuse_drills(options, hosts)
    return Plan(
        number=number,
        begun=now(),
        spec_hash=cluster.spec_hash,
        gcluster=gcluster.__version__,
        tests=options.tests or tuple(test.name for test in acceptance_tests()),
        repetitions=options.repetitions or 3,
        soak_s=options.soak_s or 0,
        path=options.path or "",
        mib=options.mib or MIB,
        dcgm_level=options.dcgm_level or 3,
        wiring=options.wiring or {},
        container=options.container or "",
        drilled=_names(options.drilled, hosts) or "",
        account=_account(cluster.spec) if options.account is None else options.account,
        nodes=_names(options.nodes, hosts) or "",
        exclusions=(options.exclude,) if options.exclude else (),
    )


def _refuse_drills(options: Options, hosts: ClusterInventory) -> None:
    """Refuse to break what takes no part (GC1196): nothing would be tested there."""
    if not options.drilled or not options.nodes:
        return
    drilled, taking_part = (
        {host.name for host in chosen(hosts, words).hosts}
        for words in (options.drilled, options.nodes)
    )
    if others := drilled - taking_part:
        raise failure(
            "GC1196",
            f"--drill {fold(sorted(others))}: takes no part in this acceptance (--nodes)",
            hint="name nodes that are tested",
            exit_code=Exit.USAGE,
        )


def _names(requested: tuple[str, ...] | None, hosts: ClusterInventory) -> str | None:
    """Return the requested nodes, as a host range; None: not given."""
    if not requested:
        return None
    return fold(host.name for host in chosen(hosts, requested).hosts)


def _account(spec: ClusterSpec) -> str:
    """Return a user of the cluster, of an account where it keeps accounts; else the gate's."""
    names = [user.name for user in spec.local_users]
    accounts = spec.scheduler.accounts
    members = {name for account in accounts.values() for name in account.users}
    return next((name for name in names if not accounts or name in members), SMOKE_USER)


def refuse_other(plan: Plan, options: Options, cluster: Cluster, hosts: ClusterInventory) -> None:
    """Refuse to go on with an acceptance that was begun with other options (GC1195)."""
    requested = {
        "--test": (options.tests, plan.tests),
        "--repetitions": (options.repetitions, plan.repetitions),
        "--soak": (options.soak_s, plan.soak_s),
        "--path": (options.path, plan.path),
        "--mib": (options.mib, plan.mib),
        "--as": (options.account, plan.account),
        "--dcgm-level": (options.dcgm_level, plan.dcgm_level),
        "--wiring": (options.wiring, plan.wiring),
        "--container": (options.container, plan.container),
        "--drill": (_names(options.drilled, hosts), plan.drilled),
        "--nodes": (_names(options.nodes, hosts), plan.nodes),
    }
    other = [name for name, (now_, then) in requested.items() if now_ is not None and now_ != then]
    if plan.spec_hash != cluster.spec_hash:
        other.append("the spec")
    if other:
        raise failure(
            "GC1195",
            f"acceptance {plan.number} of {cluster.name} is unfinished and was begun with another "
            f"{' and '.join(other)}",
            hint="go on without that option, or begin another with --new",
            exit_code=Exit.USAGE,
        )
