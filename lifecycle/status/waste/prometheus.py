"""Questions to a cluster's Prometheus, over the SSH that a person has to its host.

It listens on that host's loopback address, behind TLS and a password that root alone may read
there: so a program of a screen is run there as root, by one SSH exec for all queries.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from ....inventory.hosts import ClusterInventory, Host
from ....schemas.spec import ClusterSpec
from ...cluster.outcome import LifecycleError, failure
from ...nodes.ssh import SshSession, Unreachable
from ...nodes.ssh.arguments import AS_ROOT

FOLDER, PORT = "/etc/gcluster/prometheus", 9090
"""Of role prometheus: certificate and password, and where it listens."""
_LIMIT_S = 150

Query: TypeAlias = tuple[str, dict[str, str]]
"""A path below Prometheus' /api/v1 and its parameters."""
QueryPrometheus: TypeAlias = Callable[[Sequence[Query]], list[Any]]
"""Returns Prometheus' answers to queries, in their order."""


class Sample(msgspec.Struct, frozen=True):
    """One series of an answer at one time."""

    labels: dict[str, str]
    value: float

    def label(self, name: str) -> str:
        """Return a label; "" where there is none, as Prometheus has it."""
        return self.labels.get(name, "")


class Series(msgspec.Struct, frozen=True):
    """One series of an answer over a time."""

    labels: dict[str, str]
    points: tuple[tuple[float, float], ...]
    """Unix time in s and value."""


def instant(
    query: QueryPrometheus, queries: Mapping[str, str], at: float
) -> dict[str, list[Sample]]:
    """Evaluate queries at a time, in s since 1970.

    Raises:
        LifecycleError: Prometheus doesn't answer, or not to one of them (GC1198).
    """
    answers = query([("query", {"query": text, "time": f"{at:.3f}"}) for text in queries.values()])
    return {
        name: [Sample(each["metric"], float(each["value"][1])) for each in _result(answer)]
        for name, answer in zip(queries, answers, strict=True)
    }


def over_time(
    query: QueryPrometheus, queries: Mapping[str, str], start: float, end: float, step: float
) -> dict[str, list[Series]]:
    """Evaluate queries at times from `start` to `end`, `step` s apart. Raises as `instant`."""
    span = {"start": f"{start:.3f}", "end": f"{end:.3f}", "step": f"{step:.3f}"}
    answers = query([("query_range", {"query": text, **span}) for text in queries.values()])
    return {
        name: [
            Series(each["metric"], tuple((float(at), float(value)) for at, value in each["values"]))
            for each in _result(answer)
        ]
        for name, answer in zip(queries, answers, strict=True)
    }


def _result(answer: Any) -> list[Any]:
    if answer.get("status") != "success":
        raise silent(f"Prometheus refuses a query: {answer.get('error', 'no reason given')}")
    return list(answer["data"]["result"])


def refuse_unwatched(spec: ClusterSpec, path: str) -> None:
    """Raise where a spec has no Prometheus to query (GC1197)."""
    if spec.monitoring is None or not spec.monitoring.prometheus:
        raise failure(
            "GC1197",
            f"{spec.name} has no metrics: its spec has no monitoring",
            hint=f"add monitoring: {{prometheus: true}} to the spec, then gcluster up {path}",
        )


def monitoring_host(spec: ClusterSpec, hosts: ClusterInventory) -> Host:
    """Return the host that runs Prometheus: of the pool that the spec names, else a controller."""
    pool = None if spec.monitoring is None else spec.monitoring.pool
    found = [host for host in hosts.hosts if host.pool == pool] or hosts.with_role("controller")
    return next(iter(found), hosts.hosts[0])


def query_over_ssh(
    session: SshSession, host: Host, folder: str = FOLDER, port: int = PORT
) -> QueryPrometheus:
    """Return how to query the Prometheus of a host, over SSH."""
    words = shlex.join([_program(), folder, str(port)])

    def query(queries: Sequence[Query]) -> list[Any]:
        answer = session.run(
            host,
            f"root={AS_ROOT}; $root python3 -c {words}",
            stdin=json.dumps(list(queries)),
            timeout_s=_LIMIT_S,
        )
        if isinstance(answer, Unreachable):
            raise silent(f"{host.name}, which runs Prometheus, can't be reached: {answer.reason}")
        if answer.returncode:
            why = (answer.stderr.strip().splitlines() or [f"exit {answer.returncode}"])[-1]
            raise silent(
                f"Prometheus on {host.name} doesn't answer: {why}",
                f"systemctl status prometheus on {host.name}; gcluster up starts it again",
            )
        try:
            return list(json.loads(answer.stdout))
        except ValueError:
            raise silent(f"the answer of Prometheus on {host.name} was cut short") from None

    return query


def silent(summary: str, hint: str = "") -> LifecycleError:
    """Return the failure of a Prometheus that doesn't answer (GC1198)."""
    return failure("GC1198", summary, hint=hint)


@cache
def _program() -> str:
    return Path(__file__).with_name("node_program.py").read_text(encoding="utf-8")
