"""What repair asks of a scheduler: may this node be worked on, and may it serve again?

Nothing here depends on which scheduler it is: a cluster without one that answers has none to ask.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ...scheduler.base import MARK, NodeUse, Scheduler, SchedulerSilent

_BY_ITSELF = (
    MARK,
    "gcluster-health: ",
    "Not responding",
    "Node unexpectedly rebooted",
    "ResumeTimeout reached",
    "Kill task failed",
    "Low socket",
    "Low RealMemory",
    "gres/",
    "not ready: ",
)
"""How reasons begin that a scheduler, a health check or gcluster gave (slurm 22.05-25.05; of
Kubernetes what `NodeSeen.why` says of a node that nobody cordoned). All others are a person's, who
knows why."""


def node_uses(service: Scheduler | None, nodes: Collection[str]) -> Mapping[str, NodeUse] | None:
    """Return what the scheduler says of the nodes; {} where there is none, None: it is silent."""
    if service is None:
        return {}
    try:
        return service.nodes(nodes)
    except SchedulerSilent:
        return None


def blocking_reason(uses: Mapping[str, NodeUse] | None, node: str, *, replacing: bool) -> str:
    """Say why a node must be left alone; "" when it may be worked on (pure).

    Args:
        uses: what the scheduler says of nodes that it knows; None: it is silent.
        node: the node in question.
        replacing: the node would go away, and running jobs with it.
    """
    if uses is None:
        return "the scheduler does not answer: jobs may run there" if replacing else ""
    use = uses.get(node)
    if use is None:
        return ""
    if use.jobs and replacing:
        return f"jobs run there: {', '.join(use.jobs[:5])}"
    if use.out and use.reason and not use.reason.startswith(_BY_ITSELF):
        return f'somebody took it out of service: "{use.reason}"'
    return ""


def take_out(service: Scheduler | None, uses: Mapping[str, NodeUse], why: str) -> None:
    """Mark nodes that are out of service by themselves as ours: they go back when they are fit."""
    out = [name for name, use in uses.items() if use.out and not use.is_ours]
    if service is not None and out:
        service.drain(out, f"{MARK}{why}")


def give_back(service: Scheduler | None, nodes: Collection[str]) -> None:
    """Let jobs start again on those of the nodes that we took out; raises SchedulerSilent."""
    if service is None or not nodes:
        return
    mine = [name for name, use in service.nodes(nodes).items() if use.is_ours]
    if mine:
        service.resume(mine)
