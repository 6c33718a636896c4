"""`scheduler: {type: none}`: what only a scheduler can do is refused."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ...diagnostics import PathTuple
from ...spec import EpilogHook, NoScheduler, Pool, PrologHook
from ..context import CheckContext
from ..registry import Finding, check


class _Refusal(msgspec.Struct, frozen=True):
    """A place of the spec, why it can't apply, and what to write instead."""

    path: PathTuple
    why: str
    hint: str


@check("GC564", summary="Something that only a scheduler does, in a cluster without one.")
def needs_a_scheduler(context: CheckContext) -> Iterator[Finding]:
    """With `scheduler: {type: none}` people start their programs on the nodes, over SSH.

    So there is no controller, pools don't grow with a queue, no prolog or epilog runs around jobs,
    and how long the cluster has been idle isn't known. Write `scheduler: {type: slurm}` and a
    controller for these.
    """
    if not isinstance(context.scheduler, NoScheduler):
        return
    refusals = [
        *(r for name, pool in context.pools.items() for r in _of_pool(name, pool)),
        *_of_cluster(context),
    ]
    for refusal in refusals:
        yield Finding(
            summary=refusal.why,
            path=refusal.path,
            hint=refusal.hint,
            relies_on=(refusal.path, ("scheduler", "type")),
        )


def _of_pool(name: str, pool: Pool) -> Iterator[_Refusal]:
    at: PathTuple = ("pools", name)
    if pool.role == "controller":
        why = f'pool "{name}" is a controller, and there is no scheduler to run on it'
        yield _Refusal((*at, "role"), why, "write role: login, or leave the pool out")
    if pool.is_elastic:
        why = f'pool "{name}" grows with the queue, and there is none without a scheduler'
        yield _Refusal((*at, "count"), why, f"write count: {pool.most}")
    for key in ("features", "weight"):
        if getattr(pool, key):
            why = f"{key}: no scheduler chooses nodes by it"
            yield _Refusal((*at, key), why, f"leave {key} out")
    if pool.update.jobs == "requeue":
        why = "jobs: requeue: nothing can put a program back in line without a scheduler"
        yield _Refusal((*at, "update", "jobs"), why, "leave it out: up waits for the programs' end")


def _of_cluster(context: CheckContext) -> Iterator[_Refusal]:
    if context.converge == "pull":
        why = "converge: pull: a controller hands out the bundles, and there is none"
        yield _Refusal(("converge",), why, "write converge: push")
    for name, hook in context.hooks.items():
        if isinstance(hook, PrologHook | EpilogHook):
            why = f"hooks.{name}: nothing runs around jobs without a scheduler"
            yield _Refusal(("hooks", name), why, "leave it out, or use a script of a stage")
    budget, monitoring = context.budget, context.monitoring
    if budget is not None and budget.idle_shutdown is not None:
        why = "idle_shutdown: how long a cluster without a scheduler has been idle isn't known"
        yield _Refusal(("budget", "idle_shutdown"), why, "write expires_on")
    if monitoring is not None and monitoring.prometheus and monitoring.pool is None:
        why = "monitoring: no controller is there to run Prometheus"
        yield _Refusal(("monitoring", "prometheus"), why, "write pool: its first host runs it")
