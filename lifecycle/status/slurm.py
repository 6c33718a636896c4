"""Queries of `status` to a Slurm controller, in one SSH exec: nodes, queue, quotas, health."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from ...inventory.hosts import Host
from ..nodes.ssh import SshResult, SshSession, Unreachable
from ..nodes.ssh.arguments import AS_ROOT
from .conditions import PartitionQueue, QueueStatus, QuotaUse, WaitingFor
from .node_facts import ControllerFacts, controller_facts

_BETWEEN = "---"
"""The line between the nodes and the jobs; a node's line has columns."""


REACHABLE = (
    "{ systemctl --quiet is-active slurmctld || scontrol ping 2>/dev/null | grep -q ' is UP' ||"
    " { echo 'Unable to contact slurm controller (connect failure)' >&2; false; }; }"
)
"""Shell condition: slurmctld runs here, or another controller of the cluster responds.

Without it sinfo and squeue retry for MessageTimeout, 30 s, where every slurmctld is stopped.
"""


def nodes_and_jobs_command(squeue: str) -> str:
    """Return the shell line that prints nodes and then jobs, these by `squeue` with options."""
    nodes = f"{REACHABLE} && sinfo --noheader --Node --format='%N|%T|%E' | sort -u"
    return f"{nodes} && echo {_BETWEEN} && squeue --noheader {squeue}"


_VIEW = nodes_and_jobs_command("--states=PENDING,RUNNING --format=%T")
_NOT_FIT = (
    *("down", "drain", "fail", "inval", "unknown", "power", "reboot", "maint", "perfctrs"),
    *("cordoned", "not ready", "starting", "unfit"),
)
"""Words in the states of sinfo, and of nodes of Kubernetes."""


def is_unfit(state: str) -> bool:
    """Return whether no job can start on a node in this state, in lower case."""
    return state.endswith("*") or any(word in state for word in _NOT_FIT)


class NodeLine(NamedTuple):
    """A node as sinfo prints it."""

    name: str
    state: str
    """Lower case: idle, mixed, drained, down*."""
    reason: str
    """Of an administrator or Slurm; "" where there is none."""


def answered(text: str) -> tuple[list[NodeLine], list[str] | None]:
    """Return the nodes, and the lines of the jobs; None where the answer was cut short."""
    lines = text.splitlines()
    whole = _BETWEEN in lines
    end = lines.index(_BETWEEN) if whole else len(lines)
    rows = [line.split("|", 2) for line in lines[:end] if line.count("|") >= 2]  # noqa: PLR2004  # three columns
    nodes = [
        NodeLine(name, state.lower(), "" if reason == "none" else reason)
        for name, state, reason in rows
    ]
    return nodes, lines[end + 1 :] if whole else None


def last_error_line(answer: SshResult) -> str:
    """Return the last line that a failed command left on stderr, else its exit status."""
    lines = answer.stderr.strip().splitlines()
    return lines[-1] if lines else f"exit {answer.returncode}"


class SchedulerView(msgspec.Struct, frozen=True, kw_only=True):
    """The controller's answer. `problem` is "" when it answered."""

    problem: str = ""
    states: dict[str, str] = {}
    """Node -> state from sinfo, lower case: idle, mixed, drained, down*; of Kubernetes ready,
    cordoned, not ready."""
    reasons: dict[str, str] = {}
    """Node -> the reason an administrator or Slurm gave, where there is one."""
    queue: QueueStatus | None = None

    def is_fit(self, node: str) -> bool:
        """Whether jobs can start on the node now or when it is free."""
        return not is_unfit(self.states.get(node, "unknown"))


def query_controller(session: SshSession, controller: Host) -> SchedulerView:
    """Query slurmctld for nodes and queue in one SSH exec; never raises for a failed controller."""
    answer = session.run_many([controller], _VIEW, timeout_s=20)[controller.name]
    if isinstance(answer, Unreachable):
        return SchedulerView(problem=f"controller {controller.name}: {answer.reason}")
    if answer.returncode != 0:
        error = last_error_line(answer)
        return SchedulerView(problem=f"slurmctld on {controller.name} does not answer: {error}")
    return _parse(answer.stdout)


def _parse(text: str) -> SchedulerView:
    nodes, jobs = answered(text)
    states = [line.strip() for line in jobs or ()]
    return SchedulerView(
        states={node.name: node.state for node in nodes},
        reasons={node.name: node.reason for node in nodes if node.reason},
        queue=QueueStatus(running=states.count("RUNNING"), pending=states.count("PENDING")),
    )


GPU = "gres/gpu"
_SHOWN = (GPU, "cpu", "node")
"""Resources whose limits are shown; GPUs also without one."""
_LIMIT_S = 30

# A slurmctld that hangs costs each client its timeout, so one of them finds out for all.
_QUEUE = nodes_and_jobs_command("--states=PENDING,RUNNING --format='%T|%P|%V|%i|%r'")
_ASK = f"""
export SLURM_TIME_FORMAT=%s SLURM_BITSTR_LEN=0
root={AS_ROOT}
code=1
if {REACHABLE} && sinfo --noheader --format=%N > /dev/null; then
  {_QUEUE}
  code=$?
fi
echo '=== now'; date +%s
if [ $code = 0 ]; then
  echo '=== since'; sinfo --noheader --Node --list-reasons --format='%N|%H'
  echo '=== quotas'; $root scontrol show assoc_mgr flags=assoc 2>/dev/null
fi
echo '=== units'
for unit in slurmctld munge; do echo "$unit $(systemctl is-active $unit)"; done
echo '=== disks'
df --output=pcent,target /var/lib/slurm /var/log 2>/dev/null | tail -n +2 | sort -u
echo '=== dbd'
if grep -q '^AccountingStorageType=.*slurmdbd' /etc/slurm/slurm.conf 2>/dev/null; then
  timeout 5 sacctmgr --noheader show cluster format=cluster 2>&1 >/dev/null || echo "exit $?"
fi
exit $code
"""
_SECTION = re.compile(r"^=== (\w+)\n", re.MULTILINE)
_ACCOUNT = re.compile(r"^ClusterName=\S* Account=(\S+) UserName= Partition= ", re.MULTILINE)
_USE = re.compile(r"([\w/]+)=(N|\d+)\((\d+)\)")
_ARRAY = re.compile(r"_\[([0-9,:-]+)(?:%\d+)?\]$")


class SchedulerReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a controller answered."""

    view: SchedulerView
    since: dict[str, str] = {}
    """Node -> when it was taken out, RFC 3339, UTC."""
    quotas: tuple[QuotaUse, ...] = ()
    facts: ControllerFacts | None = None
    """None: it could not be queried."""


def report_of(session: SshSession, controller: Host) -> SchedulerReport:
    """Query a controller for everything in one SSH exec; never raises for a failed one."""
    answer = session.run_many([controller], _ASK, timeout_s=_LIMIT_S)[controller.name]
    if isinstance(answer, Unreachable):
        problem = f"controller {controller.name}: {answer.reason}"
        return SchedulerReport(view=SchedulerView(problem=problem))
    head, sections = _split(answer.stdout)
    facts = controller_facts(controller.name, sections)
    if answer.returncode != 0:
        error = last_error_line(answer)
        problem = f"slurmctld on {controller.name} does not answer: {error}"
        return SchedulerReport(view=SchedulerView(problem=problem), facts=facts)
    nodes, jobs = answered(head)
    view = SchedulerView(
        states={node.name: node.state for node in nodes},
        reasons={node.name: node.reason for node in nodes if node.reason},
        queue=queue_of(jobs or (), now=_number(sections.get("now", ""))),
    )
    return SchedulerReport(
        view=view,
        since=_since(sections.get("since", "")),
        quotas=quotas_of(sections.get("quotas", "")),
        facts=facts,
    )


def queue_of(lines: Iterable[str], *, now: float) -> QueueStatus:
    """Read squeue's lines STATE|PARTITIONS|SUBMITTED|JOB|REASON; times are epoch seconds."""
    counts: Counter[tuple[str, str]] = Counter()
    reasons: Counter[str] = Counter()
    total: Counter[str] = Counter()
    oldest: dict[str, float] = {}
    for line in lines:
        state, partitions, submitted, job, why = (*line.strip().split("|"), *[""] * 5)[:5]
        tasks = tasks_of(job)
        if state == "PENDING" and why not in {"", "None"}:
            reasons[why] += tasks
        total[state] += tasks
        waited = now - _number(submitted) if submitted.isdecimal() else None
        for name in ["", *partitions.split(",")] if partitions else [""]:
            counts[name, state] += tasks
            if state == "PENDING" and waited is not None:
                oldest[name] = max(oldest.get(name, 0.0), waited)
    return QueueStatus(
        running=total["RUNNING"],
        pending=total["PENDING"],
        oldest_wait_s=oldest.get(""),
        partitions=tuple(
            PartitionQueue(
                name=name,
                running=counts[name, "RUNNING"],
                pending=counts[name, "PENDING"],
                oldest_wait_s=oldest.get(name),
            )
            for name in sorted({name for name, _ in counts} - {""})
        ),
        reasons=tuple(WaitingFor(reason=why, jobs=jobs) for why, jobs in reasons.most_common()),
    )


def tasks_of(job: str) -> int:
    """Return the number of jobs in a line of squeue: "12_[1-100:2,200%5]" is 51."""
    found = _ARRAY.search(job)
    if found is None:
        return 1
    many = 0
    for part in found[1].split(","):
        numbers, _, step = part.partition(":")
        first, _, last = numbers.partition("-")
        many += len(range(int(first), int(last or first) + 1, int(step or 1)))
    return many


def quotas_of(text: str) -> tuple[QuotaUse, ...]:
    """Read `scontrol show assoc_mgr flags=assoc`: GPUs in use, and whatever is limited."""
    found = []
    for start in _ACCOUNT.finditer(text):
        next_one = text.find("ClusterName=", start.end())
        record = text[start.end() : next_one if next_one >= 0 else None]
        line = next((i for i in record.split() if i.startswith("GrpTRES=")), "")
        for resource, limit, used in _USE.findall(line):
            limited = limit != "N"
            if resource in _SHOWN and (limited or (resource == GPU and int(used))):
                found.append(
                    QuotaUse(
                        account=start[1],
                        resource=resource,
                        used=int(used),
                        limit=int(limit) if limited else None,
                    )
                )
    return tuple(found)


def _split(text: str) -> tuple[str, dict[str, str]]:
    """Return the text before the first section, and the sections."""
    head, *rest = _SECTION.split(text)
    return head, dict(zip(rest[::2], rest[1::2], strict=True))


def _since(text: str) -> dict[str, str]:
    found = {}
    for line in text.splitlines():
        node, _, when = line.strip().partition("|")
        if when.isdecimal():
            found[node] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(when)))
    return found


def _number(text: str) -> float:
    return float(text) if text.strip().isdecimal() else 0.0
