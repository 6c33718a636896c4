"""What priority/multifactor gives a job: the sum that `sprio` shows, as Slurm's source adds it up.

Read in src/plugins/priority/multifactor (priority_multifactor.c, fair_tree.c) of Slurm 17.11 to
20.02 in November 2026 and compared with sprio of 24.11.5.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import msgspec

from ..schemas.spec.scheduler import PriorityWeights
from .accounting.records import ROOT, Accounting, Association, AssociationKey

MAX_AGE_S = 7 * 86_400
"""PriorityMaxAge: waiting longer adds nothing more. Slurm's own default."""
HIGHEST = 0xFFFFFFFF
"""A priority is an unsigned 32-bit number; 0 is a job that is held."""


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """What a job's factors are measured by: the largest of each that the cluster has."""

    nodes: int
    cpus: int
    """Hardware threads of all nodes."""
    highest_tier: int = 1
    """PriorityJobFactor of the partition that has most."""
    highest_qos: int = 0
    """Priority of the QOS that has most."""


class PendingJob(msgspec.Struct, frozen=True, kw_only=True):
    """What of a job counts."""

    age_s: float = 0
    """Since it could have started."""
    nodes: int = 1
    cpus: int = 0
    """0: not known yet; then nodes alone make its size."""
    tier: int = 1
    """PriorityJobFactor of its partition."""
    qos: int = 0
    """Priority of its QOS."""
    fair_share: float = 0
    """Of its association, 0 to 1: of `fair_tree`."""
    nice: int = 0


class Priority(msgspec.Struct, frozen=True, kw_only=True):
    """The weighted factors of a job."""

    age: float
    fair_share: float
    job_size: float
    partition: float
    qos: float
    nice: int

    @property
    def total(self) -> int:
        """Their sum, cut to a whole number; 1 at least."""
        parts = self.age + self.fair_share + self.job_size + self.partition + self.qos
        return min(HIGHEST, int(max(1.0, parts - self.nice)))


def priority(job: PendingJob, weights: PriorityWeights, scale: Scale) -> Priority:
    """Return the priority of a job."""
    size = job.nodes / scale.nodes
    if job.cpus:
        size = (size + job.cpus / scale.cpus) / 2
    return Priority(
        age=weights.age * min(1.0, max(0.0, job.age_s) / MAX_AGE_S),
        fair_share=weights.fairshare * job.fair_share,
        job_size=weights.job_size * min(1.0, max(0.0, size)),
        partition=weights.partition * job.tier / scale.highest_tier,
        qos=weights.qos * job.qos / scale.highest_qos if scale.highest_qos else 0.0,
        nice=job.nice,
    )


def fair_tree(
    accounting: Accounting, usage: Mapping[AssociationKey, float]
) -> dict[AssociationKey, float]:
    """Return each member's fair-share factor, 0 to 1 (the Fair Tree algorithm).

    Siblings are sorted by share over usage, users before accounts where they are equal; users are
    ranked in that order from the top of the tree down. Accounts that are equal are ranked as one.
    Slurm's own user root is a member of the account root and counts.

    Args:
        accounting: the tree; every account's parent must be in it.
        usage: decayed usage of members in any one unit; who isn't there has none.
    """
    slurms_own = Association(account=ROOT, user=ROOT)
    members = {slurms_own.key: slurms_own, **accounting.members}
    tree = _Tree([*accounting.accounts.values(), *members.values()], usage)
    ranks = _Ranks(len(members))
    ranks.walk(tree, tree.parts(ROOT), tied_above=False)
    del ranks.factors[slurms_own.key]
    return ranks.factors


class _Tree:
    """Shares and usage of every association among its siblings."""

    def __init__(
        self, associations: Iterable[Association], usage: Mapping[AssociationKey, float]
    ) -> None:
        self._parts: dict[str, list[Association]] = {}
        for one in associations:
            if one.user or one.parent:
                self._parts.setdefault(one.account if one.user else one.parent, []).append(one)
        self._usage = usage

    def parts(self, account: str) -> list[Association]:
        """Return the members and accounts that an account consists of."""
        return self._parts.get(account, [])

    def used(self, one: Association) -> float:
        """Return the usage of a member, or of all below an account."""
        if one.user:
            return self._usage.get(one.key, 0.0)
        return math.fsum(self.used(part) for part in self.parts(one.account))

    def level(self, one: Association) -> float:
        """Return its share over its usage, both as parts of its siblings' and its own."""
        siblings = self.parts(one.account if one.user else one.parent)
        used = self.used(one)
        if used == 0:
            return math.inf if one.share else 0.0
        share = one.share / sum(sibling.share for sibling in siblings)
        return share / (used / math.fsum(self.used(sibling) for sibling in siblings))


class _Ranks:
    """Ranks as they are given, from the number of members down."""

    def __init__(self, members: int) -> None:
        self.factors: dict[AssociationKey, float] = {}
        self._members = members
        self._rank = members
        """Of the last member that was not equal to the one before."""
        self._next = members

    def walk(self, tree: _Tree, siblings: list[Association], *, tied_above: bool) -> None:
        """Rank what is below one account, or below several that are equal."""
        levels = [(tree.level(one), one) for one in siblings]
        levels.sort(key=lambda pair: (-pair[0], not pair[1].user, pair[1].key))
        before: float | None = None
        done: set[AssociationKey] = set()
        for place, (level, one) in enumerate(levels):
            if one.key in done:
                continue
            tied = tied_above if place == 0 else level == before
            before = level
            if one.user:
                if not tied:
                    self._rank = self._next
                self.factors[one.key] = self._rank / self._members
                self._next -= 1
                continue
            equal = [other for its, other in levels if its == level and not other.user]
            done.update(other.key for other in equal)
            below = [part for other in equal for part in tree.parts(other.account)]
            self.walk(tree, below, tied_above=tied)
