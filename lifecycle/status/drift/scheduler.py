"""Drift of a scheduler: the query, and the evaluation of its output.

Behind an interface: `drift` runs the scheduler's shell lines on a controller, within its one SSH
exec, and passes on their output.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from ....inventory.hosts import ClusterInventory
from ....schemas.catalog import Catalog
from ....schemas.spec import ClusterSpec, KubernetesScheduler
from ...kubernetes.objects import desired_objects
from ...scheduler.base import MARK
from ..slurm import REACHABLE, is_unfit
from .kubernetes import KubernetesDrift
from .values import Drift, SchedulerFindings, stamp_of


class SchedulerDrift(Protocol):
    """A scheduler, as far as drift is about it."""

    name: str
    words: str
    """What is run on a controller, as root, by a POSIX shell."""

    def judge(
        self, printed: Mapping[str, str], nodes: Mapping[str, Collection[str]]
    ) -> SchedulerFindings:
        """Return what differs (pure).

        Args:
            printed: controller that responded -> the output of its shell lines.
            nodes: node that should run jobs -> steps by which `--fix` brings it back.
        """
        ...


def scheduler_drift(spec: ClusterSpec, hosts: ClusterInventory, catalog: Catalog) -> SchedulerDrift:
    """Return the drift check of the spec's scheduler; `hosts` are all of the spec."""
    if not isinstance(spec.scheduler, KubernetesScheduler):
        return SlurmDrift(spec.name)
    names = [host.name for host in hosts.hosts]
    return KubernetesDrift(spec.name, desired_objects(spec, hosts, catalog), names)


class SlurmDrift:
    """Slurm: node states with who set them and when, and partitions."""

    name = "slurm"
    words = (
        f"export SLURM_TIME_FORMAT=%s SLURM_BITSTR_LEN=0; {REACHABLE} &&"
        " sinfo --noheader --Node --format='node|%N|%T|%u|%H|%E' | sort -u | grep . &&"
        " sinfo --noheader --format='partition|%R|%a' | sort -u"
    )

    def __init__(self, cluster: str) -> None:
        """Hold the cluster's name, for the commands of the hints."""
        self._cluster = cluster

    def judge(
        self, printed: Mapping[str, str], nodes: Mapping[str, Collection[str]]
    ) -> SchedulerFindings:
        """Return nodes that take no jobs, or are unknown, and partitions that are not up."""
        rows = [
            line.split("|", 5)
            for text in printed.values()
            for line in text.splitlines()
            if line.startswith(("node|", "partition|"))
        ]
        if not rows:
            return SchedulerFindings(problem="slurmctld does not answer")
        states = {row[1]: row for row in rows if row[0] == "node"}
        drifts = [
            drift
            for node, steps in nodes.items()
            if (drift := self._of_node(node, states.get(node), tuple(steps)))
        ]
        drifts += [
            Drift(
                plane="scheduler",
                where=row[1],
                kind="partition",
                name=row[1],
                was="up",
                now=row[2],
                hint=f"scontrol update PartitionName={row[1]} State=UP, on the controller",
            )
            for row in {tuple(row) for row in rows if row[0] == "partition"}
            if row[2] != "up"
        ]
        return SchedulerFindings(drifts=tuple(drifts))

    def _of_node(self, node: str, row: list[str] | None, steps: tuple[str, ...]) -> Drift | None:
        if row is None:
            return Drift(
                plane="scheduler",
                where=node,
                kind="state",
                name=node,
                was="known",
                now="the scheduler does not know it",
                steps=steps,
                fixable=True,
            )
        _, _, state, user, at, reason = row
        if not is_unfit(state.lower()):
            return None
        by_person = user not in {"Unknown", "slurm", ""} and not reason.startswith(MARK)
        drained = "drain" in state.lower()
        return Drift(
            plane="scheduler",
            where=node,
            kind="state",
            name=node,
            was="in service",
            now=f"{state.lower()}: {reason}" if reason and reason != "none" else state.lower(),
            when=_when(at),
            who="" if user == "Unknown" else user,
            steps=() if drained else steps,
            fixable=not drained,
            hint=self._hint(node, reason, by_person=by_person) if drained else "",
        )

    def _hint(self, node: str, reason: str, *, by_person: bool) -> str:
        if reason.startswith(MARK):
            return "gcluster up goes on with it"
        if by_person and not reason.startswith("gcluster-health"):
            return f"gcluster resume {self._cluster} {node}"
        return f"gcluster repair {self._cluster} {node}"


def _when(at: str) -> str:
    return stamp_of(int(at)) if at.isdecimal() and int(at) else ""
