"""The kinds of events. Coarse on purpose: one event a step of a run, never one a node and step."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec


class RunStarted(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A command that makes changes began."""

    command: str
    spec_hash: str
    argv_safe: tuple[str, ...] = ()
    """The command line without anything secret."""
    commit: str = ""
    """That the spec comes from, "+changes" after it where the file differs; "": unknown."""
    why: str = ""
    """Its trigger, other than a user: what was due; "": a user."""


class RunFinished(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The command of this event's run ended."""

    outcome: str
    """"ok", "failed", "interrupted" ..."""
    exit_code: int


class Built(msgspec.Struct, frozen=True, kw_only=True):
    """What a cluster was brought up with."""

    gcluster: str
    """Version."""
    roles: dict[str, str] = {}
    """Role -> hash of what it runs."""
    versions: dict[str, str] = {}
    """"POOL: SOFTWARE" -> version."""


class SpecApplied(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The spec of this hash was applied to the cluster."""

    spec_hash: str
    built: Built | None = None
    """None: written by a version that didn't keep it."""


class SpecStored(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """What is being applied was stored as a new object."""

    number: int
    """Of the object under `applied/`."""
    sha256: str
    """Of its content, in hex."""


class DamageAccepted(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A person had the state repaired: what is damaged or missing before this event is known."""

    events: dict[int, str] = {}
    """Number of an event that can't be read -> what is wrong with it."""
    objects: dict[str, str] = {}
    """Key of another object -> what was done about it."""


class StageDone(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A stage of a run ended."""

    stage: str
    ok: bool
    summary: str = ""


class HostsConverged(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Convergence ended: which hosts match the spec, and why others don't."""

    hosts: str
    """As a Slurm host range: "gpu[001-064]"."""
    failed: dict[str, str] = {}
    """Host -> reason."""
    steps: int | None = None
    """Pairs of host and step that ran; None: not counted."""


class SmokeFinished(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The AllReduce over the cluster gave a verdict."""

    verdict: str
    busbw: float | None = None
    """Bus bandwidth at the largest size, in the unit of the certificate; None: not measured."""
    nodes: int | None = None
    summary: str = ""
    simulated: bool = False
    """The GPUs are no real ones: what the nodes' one machine carries is no fabric's bandwidth."""


class Intent(msgspec.Struct, frozen=True, kw_only=True):
    """One resource that is about to be created."""

    id: str
    site: str
    resource_kind: str
    resource_key: str
    """"node/gpu001"."""
    pool: str | None = None


class Deletion(msgspec.Struct, frozen=True, kw_only=True):
    """One resource that is gone."""

    site: str
    resource_key: str
    provider_id: str


class IntentsStored(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Resources are about to be created."""

    intents: tuple[Intent, ...]


class ResourcesCreated(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Intended resources exist."""

    created: dict[str, str]
    """Intent -> the provider's id."""


class ResourcesFailed(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Intended resources were not created, and nothing is left of them."""

    failed: dict[str, str]
    """Intent -> reason."""


class ResourcesDeleted(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Resources are gone."""

    deleted: tuple[Deletion, ...]


PurchaseOutcome: TypeAlias = Literal[
    "trying", "held", "refused", "skipped", "bought", "taken-back", "given-up", "again"
]
"""trying: about to be requested. held: created, and kept. refused: no capacity. skipped: not
requested. bought: a capacity block is paid. taken-back: removed again. given-up: the list ended
short. again: the pool must be bought again from its first purchase option."""


class PurchaseAttempted(msgspec.Struct, frozen=True, kw_only=True, tag="OptionTried"):
    """One step on the fallback list of a pool's market."""

    site: str
    pool: str
    option: str = msgspec.field(name="option")
    """Key of the purchase option; "" where the step is about none."""
    outcome: PurchaseOutcome
    nodes: str = ""
    """What it is about, as a Slurm host range; of a refusal those that could not be had."""
    loose: str = ""
    """Of a refusal: nodes that came, and that shall be taken back before the next option."""
    reason: str = ""
    """The cloud's message, or why the option was not tried."""
    ends: bool = False
    """The last step: the next `up` may try every option again."""


BurstStep: TypeAlias = Literal["requested", "made", "refused", "joined", "leaving", "gone"]
"""`requested`: written down before the call. made: they exist. refused: nothing is left of the
request. joined: they take jobs. leaving: about to be removed. gone: nothing is left of them."""


class BurstStepped(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Rented nodes came one step further."""

    site: str
    pool: str
    step: BurstStep
    nodes: str
    """As a Slurm host range."""
    burst: str
    """Token of the call that makes them: the same after a kill."""
    option: str = ""
    """How they are bought, as the pool's `market` has it; "": there is one way."""
    usd_per_hour: float = 0.0
    """Upper bound for one node; 0 for those that cost nothing, and where no ceiling needs it."""
    until: float | None = None
    """When they are given back at the latest, seconds since 1970; None: their job has no limit."""
    reason: str = ""
    """Of a refusal: the cloud's message; of a leave: the reason."""
    alone: bool = False
    """Of a refusal: other jobs' nodes were requested together with these, so they follow one by
    one.
    """


class JobMoved(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A job is about to be moved to another partition."""

    job: str
    home: str
    """Partition that it was sent to."""
    to: str
    usd_per_hour: float = 0.0
    """The most that it may add, until its nodes are requested."""
    until: float | None = None
    nodes: int = 0
    """New nodes that it may bring."""
    reason: str = ""


class RoomPromised(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The oldest job of a partition that lacks room was promised some."""

    partition: str
    job: str = ""
    """"": no job has a reservation."""
    at: float = 0.0


RepairStep: TypeAlias = Literal["queued", "trying", "failed", "admitted", "given-up", "dropped"]
"""queued: `up` ended without it. trying: a repair is about to begin. failed: the repair did not
help. admitted: it is in service. given-up: no further repairs. dropped: the spec no longer has
it."""
RepairAction: TypeAlias = Literal["retry", "replace"]
"""retry: booted and converged again as it is. replace: recreated by its site."""


class RepairStepped(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Nodes that the cluster does without came one step further."""

    site: str
    pool: str
    step: RepairStep
    nodes: str
    """As a Slurm host range."""
    action: RepairAction | None = None
    """What is tried or has failed."""
    reason: str = ""
    """Why they are not fit."""


ExpiryKind: TypeAlias = Literal["expires", "idle"]


class ExpiryAnnounced(msgspec.Struct, frozen=True, kw_only=True, tag="EndAnnounced"):
    """The expiry of the cluster was announced, with its earliest time."""

    kind: ExpiryKind
    due: float
    """When its time is up, seconds since 1970."""
    earliest: float
    """Not removed before, seconds since 1970: the announced notice."""
    why: str


class ExpiryWithdrawn(msgspec.Struct, frozen=True, kw_only=True, tag="EndWithdrawn"):
    """What was announced holds no more."""

    why: str


class Unreadable(msgspec.Struct, frozen=True, kw_only=True):
    """An event of a kind that this version doesn't have, or a damaged one: shown, never used."""

    kind: str
    """The unknown kind; "" of a damaged one."""
    problem: str


Known: TypeAlias = (
    RunStarted
    | RunFinished
    | SpecApplied
    | SpecStored
    | DamageAccepted
    | StageDone
    | HostsConverged
    | SmokeFinished
    | IntentsStored
    | ResourcesCreated
    | ResourcesFailed
    | ResourcesDeleted
    | PurchaseAttempted
    | BurstStepped
    | JobMoved
    | RoomPromised
    | RepairStepped
    | ExpiryAnnounced
    | ExpiryWithdrawn
)
Body: TypeAlias = Known | Unreadable
RunOutcome: TypeAlias = Literal["running", "finished", "interrupted"]
