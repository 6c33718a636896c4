"""Why nodes are unhealthy: from facts to causes, as text and with the next step.

Unhealthy nodes are queried with one SSH exec each, all at once. A deeper cause hides what follows
from it: with a full disk slurmctld is down, with a skewed clock credentials are refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from ...inventory.hosts import Host
from ..nodes.ssh import SshResult, SshSession, Unreachable
from .conditions import Cause
from .node_facts import ControllerFacts, NodeFacts, node_facts
from .slurm import SchedulerReport

FULL_PERCENT = 98
"""From here on a disk counts as full: slurmd keeps no spool at 100 %, and logs fill the rest."""
CREDENTIAL_S = 300
"""Lifetime of a MUNGE credential, and the most that clocks may differ (munge(1), default)."""
SKEW_S = 60
"""Clocks that differ by more are reported before credentials are refused."""

_REASONS = (
    ("SlurmdSpoolDir is full", "disk-full", "slurmd's spool folder is full"),
    ("Node unexpectedly rebooted", "rebooted", "it restarted by itself, so its jobs were lost"),
    ("Kill task failed", "hung-process", "a job's process does not end: a disk or GPU hangs"),
    ("Duplicate jobid", "started-twice", "a killed slurmctld lost that a job ran there"),
    ("Low RealMemory", "less-memory", "it has less memory than its machine type: a module failed"),
    ("gres/gpu count", "less-gpus", "it has fewer GPUs than its machine type"),
    ("Prolog error", "prolog", "the prolog failed there, and the job was queued again"),
    ("Epilog error", "epilog", "the epilog failed there"),
    ("ResumeTimeout reached", "never-joined", "it was started and did not register in time"),
)  # fmt: skip
"""How Slurm's own reasons begin or what they hold (slurm 22.05-25.05) -> kind and meaning."""


def diagnose(
    cluster: str, controller: ControllerFacts | None, problem: str, nodes: Iterable[NodeFacts]
) -> tuple[Cause, ...]:
    """Return the causes, the controller's first.

    Args:
        cluster: its name, for the commands of the next steps.
        controller: its report; None: it can't be reached.
        problem: why the scheduler did not
        respond; "" when it did.
        nodes: the unhealthy ones.
    """
    found = [] if controller is None else list(_of_controller(cluster, controller, problem))
    if controller is None and problem:
        found.append(
            Cause(
                kind="controller-off",
                host="",
                summary=f"{problem}: running jobs go on, none starts",
                next_step="start that machine; a backup controller takes over where there is one",
            )
        )
    for node in nodes:
        cause = _of_node(cluster, node)
        if cause is not None:
            found.append(cause)
    return tuple(found)


def _of_controller(cluster: str, facts: ControllerFacts, problem: str) -> Iterable[Cause]:
    host = facts.host
    full = [(path, percent) for path, percent in facts.disks.items() if percent >= FULL_PERCENT]
    for path, percent in full:
        yield Cause(
            kind="disk-full",
            host=host,
            summary=f"{path} of {host} is {percent} % full: slurmctld can't keep its state",
            next_step=f"gcluster ssh {cluster} {host} -- sudo du -xh -d 2 {path}",
        )
    munge = facts.units.get("munge", "active")
    if munge != "active":
        yield Cause(
            kind="munge-down",
            host=host,
            summary=f"munge on {host} is {munge}: Slurm refuses all requests",
            next_step=f"gcluster ssh {cluster} {host} -- sudo journalctl -u munge -n 20",
        )
    state = facts.units.get("slurmctld", "active")
    if state != "active" and not full and munge == "active":
        yield Cause(
            kind="slurmctld-down",
            host=host,
            summary=f"slurmctld on {host} is {state}: running jobs go on, none starts",
            next_step=f"gcluster ssh {cluster} {host} -- sudo journalctl -u slurmctld -n 20",
        )
    elif problem and not full and munge == "active":
        yield Cause(
            kind="slurmctld-silent",
            host=host,
            summary=f"slurmctld runs and gives no answer: {problem}",
            next_step=f"gcluster ssh {cluster} {host} -- scontrol ping",
        )
    if facts.dbd:
        yield Cause(
            kind="slurmdbd-down",
            host=host,
            summary=f"slurmdbd does not answer {host} ({facts.dbd}): jobs go on, slurmctld keeps "
            "their records until it does, and no account can be changed",
            next_step="on its host: sudo journalctl -u slurmdbd -u mariadb -n 20",
        )


def _of_node(cluster: str, node: NodeFacts) -> Cause | None:
    host = node.host
    enter = f"gcluster ssh {cluster} {host} --"
    if node.unreachable:
        return Cause(
            kind="node-dead",
            host=host,
            summary=f"{host} does not answer ({node.unreachable}): its jobs are put back in line",
            next_step="start it; it serves again by itself when it registers (ReturnToService)",
        )
    full = [path for path, percent in node.disks.items() if percent >= FULL_PERCENT]
    if full:
        return Cause(
            kind="disk-full",
            host=host,
            summary=f"{full[0]} of {host} is {node.disks[full[0]]} % full: no job starts there",
            next_step=f"{enter} sudo du -xh -d 2 {full[0]}, then gcluster resume {cluster} {host}",
        )
    if node.units.get("munge", "active") != "active":
        return Cause(
            kind="munge-down",
            host=host,
            summary=f"munge on {host} is {node.units['munge']}: slurmd is not let in",
            next_step=f"{enter} sudo journalctl -u munge -n 20",
        )
    return _of_trust(cluster, node, enter) or _of_slurmd(cluster, node, enter)


def _of_trust(cluster: str, node: NodeFacts, enter: str) -> Cause | None:
    """Clocks before keys: a clock that is off makes good credentials bad."""
    off = node.ahead_s if node.ahead_s is not None else node.ntp_offset_s
    if off is not None and abs(off) > SKEW_S:
        where = "before" if off > 0 else "behind"
        return Cause(
            kind="clock-skew",
            host=node.host,
            summary=f"the clock of {node.host} is {abs(off):.0f} s {where} the controller's: "
            f"credentials live {CREDENTIAL_S} s",
            next_step=f"{enter} sudo chronyc makestep",
        )
    if node.credential.startswith("Invalid credential"):
        return Cause(
            kind="munge-key",
            host=node.host,
            summary=f"{node.host} has another MUNGE key than the controller: slurmd is not let in",
            next_step=f"{enter} sudo rm -f /var/lib/gcluster/stamps/munge.configure, "
            f"then gcluster up {cluster}",
        )
    return None


def _of_slurmd(cluster: str, node: NodeFacts, enter: str) -> Cause | None:
    slurmd = node.units.get("slurmd", "active")
    if slurmd != "active":
        return Cause(
            kind="slurmd-down",
            host=node.host,
            summary=f"slurmd on {node.host} is {slurmd}: its jobs go on, none starts",
            next_step=f"{enter} sudo journalctl -u slurmd -n 20",
        )
    for words, kind, meaning in _REASONS:
        if words in node.reason:
            return Cause(
                kind=kind,
                host=node.host,
                summary=f"{node.host}: {meaning} ({node.reason})",
                next_step=f"fix it, then gcluster resume {cluster} {node.host}",
            )
    if node.requested and (node.state.endswith("*") or node.reason == "Not responding"):
        return Cause(
            kind="cut-off",
            host=node.host,
            summary=f"{node.host} runs slurmd and the controller gets no answer from it: "
            "a firewall or a route between them, unless it was away a moment ago",
            next_step=f"{enter} scontrol ping; slurmd listens on port 6818, slurmctld on 6817",
        )
    return None


MOST = 16
"""Most nodes that are queried: many that fail at once mostly fail for one reason."""
ASK = """
unmunge 2>&1
for unit in slurmd munge; do echo "$unit $(systemctl is-active $unit)"; done
df --output=pcent,target /var/lib/slurm /var/log / 2>/dev/null | tail -n +2
chronyc -n tracking 2>/dev/null
true
"""
"""The credential comes on standard input, so that no list of processes shows it."""
_LIMIT_S = 20


def causes_of(  # noqa: PLR0917  # target, connection and subject
    cluster: str,
    session: SshSession,
    controller: Host,
    report: SchedulerReport,
    nodes: Iterable[Host],
    unreachable: dict[str, str],
) -> tuple[Cause, ...]:
    """Return why the scheduler or nodes are unhealthy; queries nothing when all is well.

    Args:
        cluster: its name.
        session: SSH to the machines.
        controller: creates the credential that nodes must decode.
        report: its report.
        nodes: compute nodes that exist.
        unreachable: host -> why SSH did not reach it.
    """
    view = report.view
    unfit = [host for host in nodes if host.name in view.states and not view.is_fit(host.name)]
    requested = [host for host in unfit if host.name not in unreachable][:MOST]
    answers = _query(session, controller, requested) if requested else {}
    facts = []
    for host in unfit:
        state, reason = view.states[host.name], view.reasons.get(host.name, "")
        if host.name in unreachable:
            dead = unreachable[host.name]
            facts.append(NodeFacts(host=host.name, state=state, reason=reason, unreachable=dead))
        elif host.name in answers:
            facts.append(node_facts(host.name, state, reason, answers[host.name]))
        else:
            facts.append(NodeFacts(host=host.name, state=state, reason=reason))
    return diagnose(cluster, report.facts, view.problem, facts)


def _query(session: SshSession, controller: Host, hosts: list[Host]) -> dict[str, str]:
    made = session.run(controller, "munge --no-input", timeout_s=_LIMIT_S)
    # An empty credential is none: unmunge reports that, and nothing is concluded from it.
    credential = made.stdout if isinstance(made, SshResult) and made.returncode == 0 else ""
    with ThreadPoolExecutor(len(hosts)) as pool:
        answers = pool.map(
            lambda host: session.run(host, ASK, stdin=credential, timeout_s=_LIMIT_S), hosts
        )
        return {
            host.name: answer.stdout
            for host, answer in zip(hosts, answers, strict=True)
            if not isinstance(answer, Unreachable)
        }
