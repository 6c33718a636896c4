"""The provider contract: what a folder in `stacks` must implement, and the values it speaks in.

One test suite (tests/stacks/test_contract.py) runs against every provider in the registry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Literal, Protocol, TypeAlias, runtime_checkable

import msgspec

from ..inventory.hosts import Host
from ..schemas.diagnostics import Diagnostic, Severity
from ..schemas.spec import ClusterSpec
from .ledger import Ledger
from .pulumi import recorded as pulumi_graph

Effect: TypeAlias = Literal["create", "update", "replace", "delete", "keep"]


class Resource(msgspec.Struct, frozen=True, kw_only=True):
    """A thing a provider makes: a node, a network, a volume, a key, an image."""

    kind: str
    """"node", "network", "volume", "key", "image" ... in the field's words."""
    name: str
    """Unique within (cluster, site, kind); the same for the same spec."""
    pool: str | None = None
    properties: dict[str, str | int | bool | None] = {}
    parent: str | None = None
    """Name of the resource this one sits in, e.g. the network of a node."""

    @property
    def key(self) -> str:
        """Return "kind/name"."""
        return f"{self.kind}/{self.name}"


class ResourceGraph(msgspec.Struct, frozen=True, kw_only=True):
    """The desired resources of one site: same spec, same graph, byte for byte."""

    site: str
    provider: str
    resources: tuple[Resource, ...]


class ResourceChange(msgspec.Struct, frozen=True, kw_only=True):
    """What apply would do to one resource, and why."""

    effect: Effect
    resource: Resource
    reason: str = ""


class Leftover(msgspec.Struct, frozen=True, kw_only=True):
    """Something that carries the cluster's tag in the provider."""

    kind: str
    name: str
    provider_id: str
    usd_per_hour: float | None = None
    """None: the price is unknown (never shown as 0)."""
    kept_data: bool = False
    """Data that `down` keeps unless named for deletion, or what such data stands in."""
    storage: tuple[str, ...] = ()
    """Names of the spec's storage whose data it holds; () when it holds none."""
    usd_per_month: float | None = None
    """Of kept data, which is billed by the month; None: unknown."""


class ProviderError(Exception):
    """A provider could not do what was asked; `diagnostics` say what, why and what to do next."""

    def __init__(
        self, *diagnostics: Diagnostic, lacking: Mapping[str, Diagnostic] | None = None
    ) -> None:
        """Hold the findings; the message is the first summary.

        `lacking` maps the names of resources that the cloud had no capacity for to their findings.
        """
        super().__init__(diagnostics[0].summary if diagnostics else "provider error")
        self.diagnostics = diagnostics
        self.lacking = dict(lacking or {})


def provider_error(code: str, summary: str, *, detail: str = "", hint: str = "") -> ProviderError:
    """Build the error for one finding that has no place in the spec."""
    return ProviderError(
        Diagnostic(code=code, severity=Severity.ERROR, summary=summary, detail=detail, hint=hint)
    )


class SiteEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Progress of apply or destroy, as it happens."""

    site: str
    done: int
    total: int
    what: str
    """One line: "node gpu003 is up"."""


class SiteContext(msgspec.Struct, frozen=True, kw_only=True):
    """All that a provider may use to act on one site."""

    spec: ClusterSpec
    site: str
    cluster_id: str
    """Random id of this cluster's state: tells two clusters of the same name apart."""
    workdir: Path
    """0700 directory on this machine for keys and caches of this cluster; removed by down."""
    cache: Path
    """Directory on this machine shared by clusters: images by the hash of their inputs."""
    ledger: Ledger
    emit: Callable[[SiteEvent], None]
    image: str | None = None
    """Key of a baked image that new nodes boot from (Baker); None: the provider's own base."""
    state: str = ""
    """URL of the cluster's state (file, s3, gs, azblob): stacks stand there beside its journal."""
    passphrase: Callable[[], str] = str
    """Reads the secret that encrypts a stack's own secrets; a call, so that no repr shows it.

    "" while none was made: then no stack was begun either, and nothing is to be asked of one.
    """
    taken: Mapping[str, str] = {}
    """Node -> key of the rung that it is bought by; absent: the first, "": it is not made."""
    buys: frozenset[str] = frozenset()
    """Pools whose capacity block may be bought now: somebody asked for it by the pool's name."""
    delete_data: frozenset[str] = frozenset()
    """Names of storage of the spec whose data `destroy` removes; all other data it keeps."""


class Grown(msgspec.Struct, frozen=True, kw_only=True):
    """Result of `grow`: the hosts that exist now because of it."""

    hosts: tuple[Host, ...]


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider says it could give for a pool now."""

    pool: str
    available: int | None
    usd_per_hour: float | None
    source: str
    age_s: float


class Provider(Protocol):
    """MUST unless marked SHOULD. Everything is safe to repeat and safe to kill."""

    name: str
    """Discriminator in the spec: `provider: NAME`."""

    def graph(self, spec: ClusterSpec, site: str) -> ResourceGraph:
        """Return the desired resources: offline, deterministic."""
        ...

    def planned_hosts(self, spec: ClusterSpec, site: str) -> tuple[Host, ...]:
        """Return names, pools, machine types and topology; addresses may be unknown ("")."""
        ...

    def preflight(self, context: SiteContext) -> tuple[Diagnostic, ...]:
        """Return what stands in the way of apply: missing tools, quota, capacity, clashes."""
        ...

    def preview(self, context: SiteContext) -> tuple[ResourceChange, ...]:
        """Compare the graph with what exists. Changes nothing."""
        ...

    def apply(self, context: SiteContext) -> None:
        """Make it so. Raises ProviderError; what was created stays in the ledger."""
        ...

    def hosts(self, context: SiteContext) -> tuple[Host, ...]:
        """Return the hosts that exist, with addresses and pinned host keys."""
        ...

    def refresh(self, context: SiteContext) -> tuple[Leftover, ...]:
        """Return all resources that exist for this cluster and site (alive or not)."""
        ...

    def destroy(self, context: SiteContext) -> None:
        """Remove every resource of the cluster on this site."""
        ...

    def sweep(self, context: SiteContext) -> tuple[Leftover, ...]:
        """Return whatever still carries the cluster's tag."""
        ...

    def grow(self, context: SiteContext, pool: str, names: Iterable[str], token: str) -> Grown:
        """Create the named elastic nodes in one bulk call; `token` makes it idempotent."""
        ...

    def shrink(self, context: SiteContext, names: Iterable[str]) -> None:
        """Remove the named elastic nodes."""
        ...

    def offers(self, context: SiteContext, pool: str) -> tuple[Offer, ...]:
        """SHOULD: return capacity, quota and price, each with its source and age."""
        ...


@runtime_checkable
class Recorder(Protocol):
    """SHOULD, for providers whose resources a Pulumi program makes."""

    def record(
        self, spec: ClusterSpec, site: str, *, preview: bool = False
    ) -> pulumi_graph.RecordedGraph:
        """Return the program as recorded offline: every resource with its resolved inputs."""
        ...


@runtime_checkable
class Stacked(Protocol):
    """SHOULD, for providers whose resources stand in a stack that has a lock of its own."""

    def cancel(self, context: SiteContext) -> bool:
        """Free the stack of a run that was killed; False: there is no stack.

        Only for whoever holds the site's lock: a run that is at work would lose its own.
        """
        ...


@runtime_checkable
class Equipped(Protocol):
    """SHOULD, for providers that need a tool of somebody else's to make and remove things."""

    def equip(self) -> None:
        """Find the tool, or install the version that fits; raises ProviderError where it can't."""
        ...


@runtime_checkable
class Baker(Protocol):
    """SHOULD, for providers whose nodes can boot from an image with the install phases baked in."""

    def base_digest(self, spec: ClusterSpec, site: str) -> str:
        """Return the hash of all that the base image is built from."""
        ...

    def has_image(self, context: SiteContext, key: str) -> bool:
        """Say whether an image with this key exists."""
        ...

    def start_builder(self, context: SiteContext, key: str) -> Host:
        """Build the base image where it is missing and start one node from it, ready for SSH."""
        ...

    def commit_builder(self, context: SiteContext, key: str) -> None:
        """Make the builder's disk the image `key`, without its keys and ids; remove the builder."""
        ...

    def discard_builder(self, context: SiteContext, key: str) -> None:
        """Remove the builder; no image is made. Safe when there is none."""
        ...
