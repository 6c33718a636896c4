"""Asks unfit nodes what is wrong: one SSH exec each, all at once, only when some are unfit."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from ...inventory.hosts import Host
from ..ssh import SshResult, SshSession, Unreachable
from ..status.conditions import Cause
from ..status.slurm_report import SchedulerReport
from .diagnose import diagnose
from .facts import NodeFacts, node_facts

MOST = 16
"""Nodes that are asked: many that fail at once mostly fail for one reason."""
ASK = """
unmunge 2>&1
for unit in slurmd munge; do echo "$unit $(systemctl is-active $unit)"; done
df --output=pcent,target /var/lib/slurm /var/log / 2>/dev/null | tail -n +2
chronyc -n tracking 2>/dev/null
true
"""
"""The credential comes on standard input, so that no list of processes shows it."""
_LIMIT_S = 20


def causes_of(  # noqa: PLR0917  # who is asked, by whom, about what
    cluster: str,
    session: SshSession,
    controller: Host,
    report: SchedulerReport,
    nodes: Iterable[Host],
    unreachable: dict[str, str],
) -> tuple[Cause, ...]:
    """Return why the scheduler or nodes are unfit; asks nobody when all is well.

    Args:
        cluster: its name.
        session: how machines are reached.
        controller: makes the credential that nodes must understand.
        report: what it said.
        nodes: compute nodes that exist.
        unreachable: host -> why SSH did not reach it.
    """
    view = report.view
    unfit = [host for host in nodes if host.name in view.states and not view.is_fit(host.name)]
    asked = [host for host in unfit if host.name not in unreachable][:MOST]
    answers = _ask(session, controller, asked) if asked else {}
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


def _ask(session: SshSession, controller: Host, hosts: list[Host]) -> dict[str, str]:
    made = session.run(controller, "munge --no-input", timeout_s=_LIMIT_S)
    # A credential that is empty is none: unmunge says so, and nothing is concluded from that.
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
