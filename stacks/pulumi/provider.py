"""Common base of all clouds' providers: a stack for fixed resources, a bulk call for bursts.

A cloud's session (`session.SiteSession`) queries and acts; the order of steps, and what the ledger
records, is the same everywhere and defined here.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, cast

import msgspec

from ...inventory.hosts import Host, SshTarget, pool_host_names
from ...schemas.catalog import Catalog, load_catalog
from ...schemas.derived.hostlist import fold
from ...schemas.diagnostics import Diagnostic
from ...schemas.spec import CloudSite, ClusterSpec, Pool
from ..io.ssh import missing_programs
from ..ledger import Ledger
from ..provider import (
    ControlPlaneAt,
    Grown,
    Leftover,
    Offer,
    Provider,
    ProviderError,
    Resource,
    ResourceChange,
    ResourceGraph,
    SiteContext,
    SiteOutputs,
    provider_error,
)
from .engine.command import equip, require
from .recording.graph import RecordedGraph, site_graph
from .session import SiteSession

_UNSURE = frozenset({"GC964", "GC966"})
"""Codes of refusals after which a cloud may have created something: it became unreachable, or its
error is unknown."""
_STACK = "stack"
"""The ledger's kind of a site's stack: Pulumi's checkpoint owns its content."""


class LoginPlugin(msgspec.Struct, frozen=True, kw_only=True):
    """The program that gets a token from a cloud when kubectl needs one."""

    program: str
    install: str
    """How to install it on this machine."""
    needs: tuple[str, ...] = ()
    """Programs that it runs itself."""
    arguments: Callable[[ControlPlaneAt], tuple[str, ...]] | None = None
    """Its arguments; None: kubectl passes it the cluster, in its environment."""


class ManagedKubernetes(msgspec.Struct, frozen=True, kw_only=True):
    """The Kubernetes that a cloud runs, as `scheduler.control_plane` names it."""

    login: LoginPlugin
    join_hint: str
    """Where to see why a node did not join."""
    repair_hint: str = ""
    """What to do about a node: the cloud chooses which go and repairs them itself; "": its nodes
    are instances of the stack, which recreates them."""
    elastic_group: Callable[[ClusterSpec, str, str], str] | None = None
    """Spec, site, pool -> the resource whose end is that of the pool's elastic nodes, as a preview
    has it; None: the cloud drains its nodes itself."""


class CloudProvider(Provider):
    """Provider of a cloud's sites. Heavy modules are imported on use."""

    has_stack: ClassVar[bool] = True
    has_purchase_options: ClassVar[bool] = True
    replaces_nodes: ClassVar[bool] = True
    sells_blocks: ClassVar[bool] = False
    """Whether capacity is bought ahead: its program gets the pools that may."""
    ready_limit_s: ClassVar[float] = 900.0  # in addition to the wait for its host key; our choice

    def __init__(self, catalog: Catalog | None = None, api: Any = None) -> None:
        """Use a catalog; default: gcluster's own. `api` replaces the cloud in tests."""
        self._given = catalog
        self._api = api

    def planned_hosts(self, spec: ClusterSpec, site: str) -> tuple[Host, ...]:
        """Return the nodes that are always there, without addresses."""
        return tuple(
            Host(
                name=node,
                site=site,
                pool=name,
                role=pool.role,
                machine=self._machine_of(pool),
                ssh=ssh,
            )
            for name, pool in spec.pools.items()
            if pool.site == site
            for ssh in (SshTarget(user=self._login_user(spec, name)),)
            for node in pool_host_names(name, pool)
        )

    def graph(self, spec: ClusterSpec, site: str) -> ResourceGraph:
        """Return the resources of the recorded program; raises ProviderError without the extra."""
        return site_graph(self.record(spec, site), provider=self.name, site=site)

    def record(self, spec: ClusterSpec, site: str, *, preview: bool = False) -> RecordedGraph:
        """Return the site's program as recorded offline, with its components and inputs."""
        require(self.name)
        return self._record(spec, site, preview=preview)

    def graph_as_bought(self, context: SiteContext) -> ResourceGraph:
        """Return the resources with nodes on the options that were taken; raises ProviderError."""
        require(self.name)
        recorded = self._record(
            context.spec, context.site, purchased=context.purchased, buys=context.buys
        )
        return site_graph(recorded, provider=self.name, site=context.site)

    def ensure_tools(self) -> None:
        """Find the engine: GC965 where it isn't, GC967 without the extra."""
        equip(self.name)

    def preview(self, context: SiteContext) -> tuple[ResourceChange, ...]:
        """Preview with the engine."""
        return self._session(context).preview(lambda: self.graph_as_bought(context))

    def apply(self, context: SiteContext) -> None:
        """Read back what is there, then make it so; raises ProviderError."""
        total = len(self.graph(context.spec, context.site).resources)
        stack = Resource(kind=_STACK, name=context.site)
        intent = context.ledger.intend(context.site, stack)
        session = self._session(context)
        session.before_up()
        session.bring_up(total)
        session.after_up()
        context.ledger.created(intent, _stack_id(context))

    def sweep(self, context: SiteContext) -> tuple[Leftover, ...]:
        """Return whatever carries the site's tags."""
        session = self._session(context)
        return session.mark_protected(session.leftovers())

    def preflight(self, context: SiteContext) -> tuple[Diagnostic, ...]:
        """Check on this machine and with the cloud what blocks `up`."""
        site = cast("CloudSite", context.spec.sites[context.site])
        lacking = missing_programs(context.site, site.tunnel)
        return (*lacking, *self._session(context).preflight())

    def hosts(self, context: SiteContext) -> tuple[Host, ...]:
        """Return the existing nodes, with the host keys that they published."""
        return self._session(context).hosts()

    def offers(self, context: SiteContext, pool: str) -> tuple[Offer, ...]:
        """Return each option's price, and what a reservation has left."""
        return self._session(context).offers(pool)

    def replace(self, context: SiteContext, names: Iterable[str]) -> None:
        """Let the engine make the machines of these nodes again; raises ProviderError.

        A machine that is one of several in a resource, as in a scale set, can't be had alone.
        """
        wanted, own = set(names), self._own_machines(context.spec, context.site)
        alone = {node: resource for node, resource in own.items() if node in wanted}
        if shared := sorted(wanted - alone.keys()):
            raise provider_error(
                "GC1104",
                f"{fold(shared)} can't be recreated alone: it has no resource of its own",
                hint="replace it in the cloud's console; gcluster repair then takes it up",
            )
        total = len(self.graph(context.spec, context.site).resources)
        self._session(context).recreate(total, alone.values())

    def control_plane(self, context: SiteContext) -> ControlPlaneAt | None:
        """Return how the control plane that the cloud runs here is reached; None: there is none."""
        site = context.spec.sites[context.site]
        return self._session(context).control_plane(str(getattr(site, "region", "")))

    def outputs(self, context: SiteContext) -> SiteOutputs:
        """Return the stack's outputs, and the cloud's facts of existing file systems."""
        return self._session(context).outputs()

    def detect_drift(self, context: SiteContext) -> tuple[ResourceChange, ...]:
        """Refresh with the engine, and return the differences from the stack."""
        return self._session(context).detect_drift()

    def machine_ids(self, context: SiteContext) -> Mapping[str, str]:
        """Return resource -> the cloud's id of the machine, of all that the stack has."""
        return self._session(context).machine_ids()

    def tracked_ids(self, context: SiteContext, found: Iterable[Leftover]) -> frozenset[str]:
        """Return those of the stack; the ledger itself records elastic machines."""
        return self._session(context).tracked_ids(found)

    def destroy(self, context: SiteContext) -> None:
        """End elastic nodes, then the stack but for data that isn't named in `delete_data`."""
        session = self._session(context)
        ended = session.end_elastic()
        session.take_down()
        for name, machine in ended.items():
            context.ledger.deleted(context.site, f"node/{name}", machine)
        context.ledger.deleted(context.site, f"{_STACK}/{context.site}", _stack_id(context))

    def cancel(self, context: SiteContext) -> bool:
        """Free the stack of a run that was killed."""
        return self._session(context).cancel()

    def grow(self, context: SiteContext, pool: str, names: Iterable[str], token: str) -> Grown:
        """Make elastic nodes by one bulk call; `token` finds them again after a kill."""
        session, wanted = self._session(context), list(names)
        there = session.existing_hosts(pool)
        missing = [name for name in wanted if name not in there]
        nodes = (Resource(kind="node", name=name, pool=pool) for name in missing)
        intents = context.ledger.intend_many(context.site, nodes)
        with _failed_intents(
            context.ledger,
            intents.values(),
            is_left=lambda: session.is_left(pool, missing, token),
        ):
            came = session.grow(pool, wanted, token)
        created = {intents[f"node/{n}"]: came[n] for n in came if f"node/{n}" in intents}
        context.ledger.created_many(created)
        return Grown(hosts=session.hosts_of(came))

    def shrink(self, context: SiteContext, names: Iterable[str]) -> None:
        """End elastic nodes; raises ProviderError for nodes of the spec."""
        for name, machine in self._session(context).shrink(set(names)).items():
            context.ledger.deleted(context.site, f"node/{name}", machine)

    @abstractmethod
    def _login_user(self, spec: ClusterSpec, pool: str) -> str:
        """Return who logs in to a pool's nodes over SSH."""

    def _machine_of(self, pool: Pool) -> str | None:
        """Return the machine type of a pool, also where it names none."""
        return pool.machine

    @abstractmethod
    def _session_type(self) -> type[SiteSession]:
        """Return what works on one site of this cloud; importing it brings the cloud's API."""

    def _session(self, context: SiteContext) -> SiteSession:
        """Return what works on a site; raises ProviderError without the extra."""
        require(self.name)
        return self._session_type()(context, self._catalog(), self._api)

    def _record(
        self,
        spec: ClusterSpec,
        site: str,
        *,
        preview: bool = False,
        purchased: Mapping[str, str] | None = None,
        buys: Collection[str] | None = None,
    ) -> RecordedGraph:
        """Record the site's program offline; requires the extra.

        `buys` are the pools that buy ahead, where a cloud sells that.
        """
        from .program import record_site  # noqa: PLC0415  # it brings Pulumi

        choices = {"buys": buys} if self.sells_blocks else {}
        return record_site(
            spec, site, self._catalog(), preview=preview, purchased=purchased, **choices
        )

    def _own_machines(self, spec: ClusterSpec, site: str) -> dict[str, str]:
        """Return node -> name of the resource that is this node alone."""
        found: dict[str, str] = {}
        for resource, bought in self.purchases(spec, site).items():
            if len(bought.nodes) == 1:  # the first name is the program's
                found.setdefault(bought.nodes[0], resource)
        return found

    def _catalog(self) -> Catalog:
        if self._given is None:
            self._given = load_catalog()
        return self._given


def _stack_id(context: SiteContext) -> str:
    return f"{context.cluster_id}/{context.site}"


@contextmanager
def _failed_intents(
    ledger: Ledger, intents: Iterable[str], *, is_left: Callable[[], bool]
) -> Iterator[None]:
    """Close the intents as failed where the body fails, and surely nothing of it is left.

    Args:
        ledger: has the intents.
        intents: of the nodes that are being created.
        is_left: queries whether machines of the burst
        exist; a failed query counts as yes.
    """
    try:
        yield
    except ProviderError as error:
        if not any(found.code in _UNSURE for found in error.diagnostics) and not _may_be_left(
            is_left
        ):
            for intent in intents:
                ledger.failed(intent, str(error))
        raise


def _may_be_left(is_left: Callable[[], bool]) -> bool:
    try:
        return is_left()
    except ProviderError:
        return True
