"""The provider contract: what a folder in `stacks` must implement, and its values.

One test suite (tests/stacks/test_contract.py) runs against every provider in the registry.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

import msgspec

from ..inventory.hosts import Host
from ..schemas.diagnostics import Diagnostic, PathTuple, Severity
from ..schemas.spec import ClusterSpec
from .ledger import Ledger

if TYPE_CHECKING:
    from .pulumi.provider import ManagedKubernetes
    from .pulumi.recording.graph import RecordedGraph

# ruff: noqa: ARG002  # a default needs none of its arguments


Effect: TypeAlias = Literal["create", "update", "replace", "delete", "keep"]


class Resource(msgspec.Struct, frozen=True, kw_only=True):
    """A resource that a provider creates: a node, a network, a volume, a key, an image."""

    kind: str
    """"node", "network", "volume", "key", "image" ..."""
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
    """Data that `down` keeps unless named for deletion, or a resource that holds such data."""
    storage: tuple[str, ...] = ()
    """Names of the spec's storage whose data it holds; () when it holds none."""
    usd_per_month: float | None = None
    """Of kept data, which is billed by the month; None: unknown."""


class ProviderError(Exception):
    """A provider's operation failed; `diagnostics` have what happened, why and what to do next."""

    def __init__(
        self, *diagnostics: Diagnostic, lacking: Mapping[str, Diagnostic] | None = None
    ) -> None:
        """Hold the findings; the message is the first summary.

        `lacking` maps the names of resources that the cloud had no capacity for to their findings.
        """
        super().__init__(diagnostics[0].summary if diagnostics else "provider error")
        self.diagnostics = diagnostics
        self.lacking = dict(lacking or {})


def provider_error(
    code: str, summary: str, *, detail: str = "", hint: str = "", path: PathTuple = ()
) -> ProviderError:
    """Build the error for one finding; `path` is its place in the spec, where it has one."""
    error = Severity.ERROR
    return ProviderError(
        Diagnostic(code=code, severity=error, summary=summary, detail=detail, hint=hint, path=path)
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
    """Random id of this cluster's state: distinguishes two clusters of the same name."""
    workdir: Path
    """0700 directory on this machine for keys and caches of this cluster; removed by down."""
    cache: Path
    """Directory on this machine shared by clusters: images by the hash of their inputs."""
    ledger: Ledger
    emit: Callable[[SiteEvent], None]
    image: str | None = None
    """Key of a baked image that new nodes boot from; None: the provider's own base."""
    state: str = ""
    """URL of the cluster's state (file, s3, gs, azblob): stacks are stored with its journal."""
    passphrase: Callable[[], str] = str
    """Reads the secret that encrypts a stack's own secrets; a call, so that no repr shows it.

    "" while there is none: then no stack was begun either, and none is to be read.
    """
    purchased: Mapping[str, str] = {}
    """Node -> key of the option that it is bought by; absent: the first, "": it is not made."""
    buys: frozenset[str] = frozenset()
    """Pools whose capacity block may be bought now: it was requested by the pool's name."""
    offerings: Mapping[str, str] = {}
    """"POOL/OPTION" -> id of the capacity block on offer that a plan showed: no other is bought."""
    delete_data: frozenset[str] = frozenset()
    """Names of storage of the spec whose data `destroy` removes; all other data it keeps."""


class Grown(msgspec.Struct, frozen=True, kw_only=True):
    """Result of `grow`: the hosts that exist now because of it."""

    hosts: tuple[Host, ...]


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """A provider's current offer for a pool."""

    pool: str
    available: int | None
    usd_per_hour: float | None
    source: str
    age_s: float


class ControlPlaneAt(msgspec.Struct, frozen=True, kw_only=True):
    """A control plane in a cloud: nothing of it is secret."""

    name: str
    """As the cloud calls the cluster."""
    endpoint: str
    """https://HOST[:PORT]"""
    authority: str
    """Certificate of the cluster's authority: PEM in base64."""
    region: str = ""


class SiteOutputs(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a site once it is made; what is not made yet is left out."""

    file_systems: Mapping[str, str] = {}
    """Storage -> what is mounted of it, of the file systems and volumes that the cloud runs."""
    fabric_networks: Mapping[str, tuple[str, ...]] = {}
    """Pool -> NETWORK/SUBNET of each interface of its nodes after the first; only where the
    cloud's control plane gives these interfaces to pods."""


class PurchaseOption(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of a pool's fallback list: a way to buy, in a zone."""

    key: str
    """Stable while the list has it, and unique in the pool: spot-use1-az4."""
    market: str
    """As the catalog calls it."""
    zone: str | None = None
    """None: the cloud chooses."""
    usd_per_hour: float | None
    """Of one node; None: unknown."""
    is_bound: bool = False
    """The price isn't the option's own: a node costs at most this."""
    buy_hours: int | None = None
    """It is a capacity block to buy for so many hours: paid at once, not refundable."""
    whole: str = ""
    """Why all nodes of a pool are bought by this option or none; "": each node by itself."""


class BlockOffering(msgspec.Struct, frozen=True, kw_only=True):
    """A capacity block that could be bought now."""

    id: str
    """As the cloud takes it: just this one is bought."""
    zone: str
    starts: str
    """"2026-12-01 11:30 UTC"; "": unknown."""
    ends: str
    usd: float | None
    """Paid at once; None: in another currency, or unknown."""
    price: str
    """The cloud's message."""


class Purchase(msgspec.Struct, frozen=True, kw_only=True):
    """What a resource of the program buys."""

    pool: str
    nodes: tuple[str, ...] = ()
    """None for a capacity block: its nodes are resources of their own."""


class Provider(ABC):
    """The methods that a provider must have, and, with defaults, those that it may have.

    Every call is safe to repeat and safe to kill. What a provider can't do is a default of this
    class: callers call the method, or read the class attribute, and never check for a type.
    """

    name: ClassVar[str]
    """Discriminator in the spec: `provider: NAME`."""
    managed_kubernetes: ClassVar[ManagedKubernetes | None] = None
    """The Kubernetes whose control plane it runs, if the site's type names one."""
    has_stack: ClassVar[bool] = False
    """Its resources are in a Pulumi stack, which has a program, a checkpoint and a lock."""
    has_purchase_options: ClassVar[bool] = False
    """It buys machines by a pool's `market`: each pool has a fallback list."""
    replaces_nodes: ClassVar[bool] = False
    """It can recreate one node without touching the others."""
    ready_limit_s: ClassVar[float] = 0.0
    """Longest wait until a machine that was made can be worked on, in seconds; 0: it makes none."""
    bakes_images: ClassVar[bool] = False
    """Its nodes can boot from an image with the install phases in it."""

    @abstractmethod
    def graph(self, spec: ClusterSpec, site: str) -> ResourceGraph:
        """Return the desired resources: offline, deterministic."""

    @abstractmethod
    def planned_hosts(self, spec: ClusterSpec, site: str) -> tuple[Host, ...]:
        """Return names, pools, machine types and topology; addresses may be unknown ("")."""

    def refusals(self, spec: ClusterSpec, site: str) -> tuple[Diagnostic, ...]:  # most: none
        """Return what of a spec this provider can't make, offline: errors with their place."""
        return ()

    @abstractmethod
    def preflight(self, context: SiteContext) -> tuple[Diagnostic, ...]:
        """Return what blocks apply: missing tools, quota, capacity, clashes."""

    @abstractmethod
    def preview(self, context: SiteContext) -> tuple[ResourceChange, ...]:
        """Compare the graph with what exists. Changes nothing."""

    @abstractmethod
    def apply(self, context: SiteContext) -> None:
        """Make it so. Raises ProviderError; what was created stays in the ledger."""

    @abstractmethod
    def hosts(self, context: SiteContext) -> tuple[Host, ...]:
        """Return the hosts that exist, with addresses and pinned host keys."""

    @abstractmethod
    def destroy(self, context: SiteContext) -> None:
        """Remove every resource of the cluster on this site."""

    @abstractmethod
    def sweep(self, context: SiteContext) -> tuple[Leftover, ...]:
        """Return whatever still carries the cluster's tag."""

    @abstractmethod
    def grow(self, context: SiteContext, pool: str, names: Iterable[str], token: str) -> Grown:
        """Create the named elastic nodes in one bulk call; `token` makes it idempotent."""

    @abstractmethod
    def shrink(self, context: SiteContext, names: Iterable[str]) -> None:
        """Remove the named elastic nodes."""

    def ids_in_use(self, context: SiteContext) -> frozenset[str]:
        """Return the ids of clusters of this name that have something here; (): none is marked."""
        return frozenset()

    def refresh(self, context: SiteContext) -> tuple[Leftover, ...]:
        """Return all resources that exist for this cluster and site (alive or not)."""
        return self.sweep(context)

    def offers(self, context: SiteContext, pool: str) -> tuple[Offer, ...]:
        """Return capacity, quota and price, each with its source and age; (): no market."""
        return ()

    def ensure_tools(self) -> None:  # noqa: B027  # most providers need no tool
        """Find the tool that creates and removes resources, or install a matching version.

        Raises:
            ProviderError: it is missing and can't be installed.
        """

    def listing_lag_s(self, context: SiteContext) -> float:
        """Return for how many seconds lists may lack what was made (eventual consistency)."""
        return 0.0

    def power_on(self, context: SiteContext, names: Iterable[str]) -> None:  # noqa: B027
        """Start these nodes where they are off; most machines start again by themselves."""

    def replace(self, context: SiteContext, names: Iterable[str]) -> None:
        """Remove these nodes of the spec, and what they alone use, and create them again.

        Names of nodes that don't exist are created. Their ledger entries follow.

        Raises:
            ProviderError: a node is not of this site, or could not be made.
        """
        raise self._unable("replace single nodes")

    # Stamps of hosts that exist only in its own file: nothing can be run or left there.

    def kept_stamps(
        self, context: SiteContext, hosts: Iterable[str]
    ) -> Mapping[str, Mapping[str, str]]:
        """Return host -> step -> digest, of those whose stamps it keeps; {}: all carry theirs."""
        return {}

    def keep_stamps(self, context: SiteContext, done: Mapping[str, Mapping[str, str]]) -> None:
        """Note steps as done: host -> step -> digest. Steps that aren't named stay as they are."""
        raise self._unable("keep stamps for its nodes")

    # A stack of resources.

    def record(
        self, spec: ClusterSpec, site: str, *, preview: bool = False
    ) -> RecordedGraph | None:
        """Return the Pulumi program as recorded offline, inputs resolved; None: it has none."""
        return None

    def cancel(self, context: SiteContext) -> bool:
        """Release the stack of a killed run; False: there is no stack.

        Requires the site's lock: a running run would lose its own.
        """
        return False

    def tracked_ids(self, context: SiteContext, found: Iterable[Leftover]) -> frozenset[str]:
        """Return the provider ids, of what a sweep found, that the stack tracks.

        Raises:
            ProviderError: the stack can't be read.
        """
        return frozenset()

    def machine_ids(self, context: SiteContext) -> Mapping[str, str]:
        """Return name of a resource, as a preview has it -> the cloud's id of its machine.

        Only of those that were made. Changes nothing.

        Raises:
            ProviderError: the stack can't be read.
        """
        return {}

    def detect_drift(self, context: SiteContext) -> tuple[ResourceChange, ...]:
        """Return how what exists differs from what the stack tracks, changing neither.

        The effect is its change: update, delete, or keep where there is none. (): previews compare
        with what exists anyway.

        Raises:
            ProviderError: the cloud can't be queried, or a tool for that is missing.
        """
        return ()

    def control_plane(self, context: SiteContext) -> ControlPlaneAt | None:
        """Return how the control plane that the cloud runs is reached; None: there is none.

        Changes nothing.
        """
        return None

    def outputs(self, context: SiteContext) -> SiteOutputs:
        """Return what the site's cloud created for nodes to use. Changes nothing.

        Raises:
            ProviderError: the stack can't be read, or the cloud can't be queried.
        """
        return SiteOutputs()

    # Purchase options, where `has_purchase_options`.

    def purchase_options(
        self, spec: ClusterSpec, site: str, pool: str
    ) -> tuple[PurchaseOption, ...]:
        """Return a pool's fallback list in the order in which it is tried; offline."""
        return ()

    def block_offering(self, context: SiteContext, pool: str, option: str) -> BlockOffering | None:
        """Return the capacity block that an option of a pool would buy now; read-only.

        None: the option buys none, the pool has one, or none is on offer.

        Raises:
            ProviderError: the cloud can't be queried, or the choice is ambiguous.
        """
        return None

    def graph_as_bought(self, context: SiteContext) -> ResourceGraph:
        """Return the desired resources, each node by the option it is bought by; offline."""
        return self.graph(context.spec, context.site)

    def purchases(self, spec: ClusterSpec, site: str) -> Mapping[str, Purchase]:
        """Return name of a resource, as ProviderError.lacking has it -> what it buys; offline."""
        return {}

    # Images with the install phases in them, where `bakes_images`.

    def base_digest(self, spec: ClusterSpec, site: str) -> str:
        """Return the hash of all that the base image is built from."""
        raise self._unable("bake images")

    def has_image(self, context: SiteContext, key: str) -> bool:
        """Return whether an image with this key exists."""
        raise self._unable("bake images")

    def start_builder(self, context: SiteContext, key: str) -> Host:
        """Build the base image where it is missing and start one node from it, ready for SSH."""
        raise self._unable("bake images")

    def commit_builder(self, context: SiteContext, key: str) -> None:
        """Make the builder's disk the image `key`, without its keys and ids; remove the builder."""
        raise self._unable("bake images")

    def discard_builder(self, context: SiteContext, key: str) -> None:
        """Remove the builder; no image is made. Safe when there is none."""
        raise self._unable("bake images")

    def _unable(self, what: str) -> ProviderError:
        return provider_error("GC917", f"the {self.name} provider can't {what}")
