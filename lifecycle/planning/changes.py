"""What a plan is made of: provider changes and node steps, each with its disruption and reason.

A disruption is a change's impact, from none to irreversible.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import msgspec

from ...schemas.diagnostics import Diagnostic
from ...stacks.provider import Effect, ResourceChange
from ..scheduler.accounting.plan import AccountingPlan
from ..state.repair_queue import Repair

Disruption: TypeAlias = Literal["none", "in-place", "rolling", "replace", "destroy"]
DISRUPTIONS: tuple[Disruption, ...] = get_args(Disruption)
"""From the mildest to the worst."""
_OF_EFFECT: dict[Effect, Disruption] = {
    "create": "none",
    "keep": "none",
    "update": "in-place",
    "replace": "replace",
    "delete": "destroy",
}


def disruption_of(change: ResourceChange) -> Disruption:
    """Return how much a provider's change to one resource disturbs."""
    return _OF_EFFECT[change.effect]


def worst(disruptions: set[Disruption]) -> Disruption:
    """Return the worst of several; "none" of none."""
    return max(disruptions, key=DISRUPTIONS.index, default="none")


class FieldLine(msgspec.Struct, frozen=True, kw_only=True):
    """One field of the spec that differs from what was applied."""

    path: str
    """"pools.train.count"."""
    disruption: Disruption
    """From the field's own policy."""
    before: str = ""
    """As text, where it is short; "" where it wasn't there."""
    after: str = ""


class UpgradeLine(msgspec.Struct, frozen=True, kw_only=True):
    """One difference of this gcluster or software lock from the one that created the cluster."""

    what: str
    """"gcluster", "gpu: nvidia_driver", "role slurm", "format of the state"."""
    before: str
    """Version; "" of a role, whose files differ."""
    after: str


class Guard(msgspec.Struct, frozen=True, kw_only=True):
    """An action of a plan that must be named to be allowed."""

    thing: str
    """As `--allow` takes it: "controller:head01", "accounting:db01", "storage:scratch",
    "login:login01", "pool:train", "slices:serve", "budget"."""
    reason: str
    """What would happen."""
    hint: str = ""
    """What can be done instead."""


class JobImpact(msgspec.Struct, frozen=True, kw_only=True):
    """The live scheduler's view of nodes that a plan replaces, destroys or drains."""

    queue: int | None = None
    """Jobs that run or wait on the whole cluster; None: no scheduler answered."""
    jobs: tuple[str, ...] = ()
    """Jobs on the nodes in question."""
    users: tuple[str, ...] = ()
    """Whose they are; under Kubernetes their accounts."""
    problem: str = ""
    """Why the scheduler could not be queried."""


class RemovedNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node that a plan destroys, or makes again."""

    name: str
    pool: str
    replaced: bool


class SitePlan(msgspec.Struct, frozen=True, kw_only=True):
    """What apply would do at one site."""

    site: str
    provider: str
    changes: tuple[ResourceChange, ...]
    unobserved: str = ""
    """Why the site could not be queried; then `changes` is all that the spec wants."""
    gone: tuple[RemovedNode, ...] = ()
    """Nodes of a cloud that it costs: there a node is a resource by another name, or one of many in
    one. Elsewhere `changes` name them."""


class StepChange(msgspec.Struct, frozen=True, kw_only=True):
    """One step that would run, and where. Hosts as a Slurm host range."""

    step: str
    """"slurm.configure"."""
    pool: str
    hosts: str
    count: int
    reason: str
    """"never ran here", "its inputs changed", "this node isn't there yet"."""
    disruption: Disruption
    at_once: int = 0
    """Of a rolling change: how many of the pool's nodes are out of service at once."""
    jobs: int | None = None
    """Of a rolling change: jobs on these nodes that it waits for; None: unknown."""
    digest: str = ""
    """Hash of all that the step is made from: the stamp that it leaves."""


OptionState: TypeAlias = Literal["stands", "next", "after", "skipped", "refused"]


class OptionView(msgspec.Struct, frozen=True, kw_only=True):
    """One option of a pool's fallback list in a plan."""

    key: str
    market: str
    zone: str | None
    state: OptionState
    """`stands`: nodes are bought on it. next: `up` would try it. after: if that has no capacity.
    skipped: it would not be tried. refused: it had no capacity in an attempt that is not
    finished."""
    nodes: str
    """Its nodes, existing or to be requested, as a Slurm host range."""
    usd_per_hour: float | None
    """The whole pool on it; None: unknown."""
    is_bound: bool
    """It costs at most this."""
    usd_at_once: float | None
    """What a capacity block costs when it is bought; None: nothing is bought, or unknown."""
    buy_hours: int | None
    offering: str = ""
    """The offered capacity block that is bought; "": the cloud wasn't queried."""
    reason: str = ""


class FallbackListView(msgspec.Struct, frozen=True, kw_only=True):
    """The fallback list of one pool in a plan: every way to buy it, in order."""

    site: str
    pool: str
    count: int
    purchase_options: tuple[OptionView, ...]
    mixes: bool = False
    """Its nodes may be on several options."""
    note: str = ""
    """What the cloud doesn't support of the spec: mixed options in a scale set."""
    after: str = ""
    """The site of the pool where none of it could be had before; "": it is at this site now."""


class SiteAnswers(msgspec.Struct, frozen=True, kw_only=True):
    """A site's report of what would stop `up`."""

    site: str
    provider: str
    diagnostics: tuple[Diagnostic, ...]
    """Errors would stop it; a warning also where the site gave no answer. Empty: all is well."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `gcluster plan`: what `up` would do now."""

    cluster: str
    spec_hash: str
    sites: tuple[SitePlan, ...]
    steps: tuple[StepChange, ...]
    unreachable: tuple[str, ...]
    """Hosts that exist but didn't respond: their steps are shown as unknown."""
    usd_per_hour: float | None
    """Of the machines that would exist afterwards; None: a price is unknown."""
    worst_usd_per_hour: float | None
    """With every elastic machine running, on the dearest option of its market; None: unknown."""
    observed_age_s: float
    diagnostics: tuple[Diagnostic, ...] = ()
    """Warnings about the spec: what its checks found, and what this version leaves out."""
    fallback_lists: tuple[FallbackListView, ...] = ()
    """How the pools of clouds are bought."""
    accounting: AccountingPlan | None = None
    """Accounts and maintenance windows; None: no Slurm that keeps any is reached by SSH."""
    objects: AccountingPlan | None = None
    """Objects and nodes of Kubernetes; None: another scheduler, or unreachable over SSH."""
    kubernetes: str = ""
    """Where the nodes take Kubernetes from, where that is this machine's bundle."""
    fields: tuple[FieldLine, ...] = ()
    """Fields of the spec that differ from what was applied; none where nothing ever was."""
    upgrades: tuple[UpgradeLine, ...] = ()
    """What another gcluster or software lock brings than at the last `up` that ended well."""
    guards: tuple[Guard, ...] = ()
    """What `up` does only when it is named."""
    job_impact: JobImpact | None = None
    """Jobs and users on nodes that would be replaced, destroyed or drained; None: not queried."""
    repairs: tuple[Repair, ...] = ()
    """Nodes that the cluster does without. What was given up is in no line of the plan."""
    preflight: tuple[SiteAnswers, ...] | None = None
    """None: the sites were not queried (`--preflight` does)."""

    @property
    def is_empty(self) -> bool:
        """Whether `up` would change nothing."""
        acts = any(c.effect != "keep" for site in self.sites for c in site.changes)
        accounting = any(
            b.changes or b.problem for b in (self.accounting, self.objects) if b is not None
        )
        return not acts and not self.steps and not self.unreachable and not accounting
