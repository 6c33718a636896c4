"""Databases to reconcile, made up: any tree of accounts, any members, any preemption."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from gcluster.inventory.accounting.desired import JobOwner
from gcluster.inventory.accounting.records import (
    Accounting,
    Association,
    AssociationKey,
    QosRecord,
    accounting,
)

QOS = ("high", "low", "urgent")
ACCOUNTS = ("bio", "chem", "nlp", "vision")
USERS = ("ada", "bob", "eve")

_limit = st.none() | st.integers(1, 512)


@st.composite
def databases(draw: st.DrawFn) -> Accounting:
    """Return what a compiled spec may request: every account has its own list and default."""
    names = sorted({"normal", *draw(st.sets(st.sampled_from(QOS)))})
    order = draw(st.permutations(names))
    qos = {}
    for place, name in enumerate(order):
        below = draw(st.sets(st.sampled_from(order[:place]))) if place else set()
        qos[name] = QosRecord(
            name=name,
            priority=draw(st.integers(0, 1000)),
            preempts=tuple(sorted(below)),
            preempt_mode=draw(st.sampled_from(("cluster", "requeue", "cancel"))),
            grace_s=draw(st.sampled_from((0, 300, 90_000))),
            gpu_limit=draw(_limit),
            gpu_limit_per_user=draw(_limit),
            max_time_min=draw(_limit),
            max_jobs_per_user=draw(_limit),
        )
    found: dict[AssociationKey, Association] = {}
    placed = ["root"]
    for name in ("root", *draw(st.permutations(sorted(draw(st.sets(st.sampled_from(ACCOUNTS))))))):
        allowed = tuple(sorted(draw(st.sets(st.sampled_from(names), min_size=1))))
        limits: dict[str, Any] = {}
        if name != "root":
            limits = {"share": draw(st.integers(1, 99)), "gpu_quota": draw(_limit)}
            limits["parent"] = draw(st.sampled_from(placed))
            placed.append(name)
        one = Association(
            account=name, qos=allowed, default_qos=draw(st.sampled_from(allowed)), **limits
        )
        found[one.key] = one
    defaults = {}
    for user in sorted(draw(st.sets(st.sampled_from(USERS)))) if placed[1:] else ():
        member_of = sorted(draw(st.sets(st.sampled_from(placed[1:]), min_size=1)))
        for account in member_of:
            one = Association(account=account, user=user)
            found[one.key] = one
        defaults[user] = draw(st.sampled_from(member_of))
    return accounting(qos, found, defaults)


jobs = st.lists(
    st.builds(
        JobOwner,
        user=st.sampled_from(USERS),
        account=st.sampled_from(ACCOUNTS),
        qos=st.sampled_from((*QOS, "normal")),
    ),
    max_size=4,
)
"""Jobs of anybody in anything; those that no database could hold change nothing."""
