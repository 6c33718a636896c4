"""Pending steps as lines of a plan: folded over hosts, each with what it does to a node in use."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping

from ...inventory.compile.steps import CHANGING_PHASES
from ...schemas.hostlist import fold
from ...schemas.spec import ClusterSpec
from ..converge.pending import Pending
from ..observe import Observation
from ..rolling.plan import in_service, must_roll
from .changes import Disruption, StepChange

NOT_THERE = "this node isn't there yet"


def step_changes(
    spec: ClusterSpec,
    pending: Pending,
    observation: Observation,
    jobs: Mapping[str, Collection[str]] | None = None,
) -> tuple[StepChange, ...]:
    """Return one line for each step, pool, reason and disruption, in the order they run.

    Args:
        spec: says how each pool is changed.
        pending: what must run.
        observation: what is there.
        jobs: node -> jobs on it; None: not asked.
    """
    there = {host.name for host in observation.existing.hosts}
    rolling = must_roll(pending, in_service(observation.existing, observation.stamps))
    sizes = Counter(host.pool for host in observation.desired.hosts)
    changes: list[StepChange] = []
    for item in pending.steps:
        acts = item.step.phase in CHANGING_PHASES
        alike: dict[tuple[str, Disruption], list[str]] = defaultdict(list)
        for host, reason in item.hosts.items():
            if host in observation.unreachable:
                continue
            if host not in there:
                alike[NOT_THERE, "none"].append(host)
            elif acts:
                alike[reason, "rolling" if host in rolling else "in-place"].append(host)
            else:
                alike[reason, "none"].append(host)
        for (reason, disruption), hosts in alike.items():
            rolls = disruption == "rolling"
            changes.append(
                StepChange(
                    step=item.step.key,
                    pool=item.pool,
                    hosts=fold(hosts),
                    count=len(hosts),
                    reason=reason,
                    disruption=disruption,
                    at_once=spec.pools[item.pool].update.at_once(sizes[item.pool]) if rolls else 0,
                    jobs=_jobs(hosts, jobs) if rolls else None,
                    digest=item.digest,
                )
            )
    return tuple(changes)


def _jobs(hosts: Collection[str], jobs: Mapping[str, Collection[str]] | None) -> int | None:
    return None if jobs is None else len({job for host in hosts for job in jobs.get(host, ())})
