"""The Pulumi program of a site on Azure: composes the components from the plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pulumi
from pulumi_azure_native import resources
from pulumi_azure_native.provider import Provider

from ....schemas.catalog import Catalog
from ....schemas.spec import ClusterSpec
from ...pulumi.component import KEPT, Args, Component
from ...pulumi.names import FILE_SYSTEMS, Names
from ...pulumi.plan import made_gateways
from ...pulumi.program import SiteProgram
from ...pulumi.recording.monitor import Answers
from ..plan.identifiers import parse
from ..plan.layout import site_plan
from ..plan.types import LiveState, SitePlan
from .balancer import balancer_address
from .budget import Alarm, AlarmArgs
from .control_plane import (
    CREDENTIALS,
    LOGIN,
    RECORDED_CREDENTIALS,
    RECORDED_LOGIN,
    make_managed,
)
from .data import Data
from .machines import Machines
from .network import Dns, DnsArgs, Network, NetworkArgs, SiteRoutes, SiteRoutesArgs


def program(
    spec: ClusterSpec,
    site: str,
    catalog: Catalog,
    live_state: LiveState | None = None,
    *,
    purchased: Mapping[str, str] | None = None,
) -> Callable[[], None]:
    """Return the program of a site; without `live_state` for a recording, which needs no cloud.

    `purchased` is also in `live_state`: host -> key of the offer by which it is bought.

    Raises:
        ProviderError: GC990, the spec needs what Azure does not offer.
    """
    plan = site_plan(spec, site, catalog)
    state = live_state or LiveState(purchased=dict(purchased or {}))
    return lambda: build(plan, state)


class GroupsArgs(Args, frozen=True, kw_only=True):
    """What resource groups are made from."""

    names: Names
    region: str
    existing: str = ""
    """Name of one that exists: then it holds everything."""
    keeps: bool = False
    """Something is made that `down` keeps."""


class Groups(Component[GroupsArgs]):
    """The resource groups: deleting a group deletes all in it, so what may be kept has its own.

    The network is there too, whether something is kept or not: it could not move there later.
    """

    kind = "azure:Groups"
    cluster: pulumi.Output[str]
    base: pulumi.Output[str]

    def build(self, args: GroupsArgs) -> None:
        """Make them, or use the one that exists."""
        if args.existing:
            self.cluster = self.base = pulumi.Output.from_input(args.existing)
            return
        kind = "resource-group"
        kept = self.child(KEPT if args.keeps else None)
        group = resources.ResourceGroup(
            args.names("cluster", kind=kind), location=args.region, opts=self.child()
        )
        base = resources.ResourceGroup(
            args.names("base", kind=kind), location=args.region, opts=kept
        )
        self.cluster, self.base = group.name, base.name


def build(plan: SitePlan, live_state: LiveState) -> None:
    """Register everything and export what `hosts` and the operators need."""
    here = SiteProgram(plan, live_state.purchased)
    names = plan.names
    # Whatever the login's own default is.
    subscription = Provider(names("azure"), subscription_id=plan.subscription, location=plan.region)
    here.options = pulumi.ResourceOptions(provider=subscription)
    held = GroupsArgs(
        names=names,
        region=plan.region,
        existing=plan.resource_group,
        keeps=plan.makes_data,
    )
    groups = here.make(Groups, "groups", held)
    network = _network(here, groups)
    data = Data(here, groups.base, groups.cluster, network)
    machines = Machines(here, groups.cluster, data, live_state)
    if plan.control_plane is not None:
        make_managed(
            here,
            plan.control_plane,
            group=groups.cluster,
            network=network,
            machines=machines,
            live_state=live_state,
        )
    _dns(here, groups, network, machines)
    _site_routes(here, groups, network, machines)
    if plan.budget is not None:
        alarm = AlarmArgs(
            names=names,
            subscription=plan.subscription,
            plan=plan.budget,
            cluster=plan.cluster,
            month=live_state.month,
        )
        here.make(Alarm, "alarm", alarm)
    pulumi.export("resource_group", groups.cluster)
    pulumi.export("base_group", groups.base)
    pulumi.export("vnet", network.vnet_id)
    pulumi.export("subnets", network.subnet_ids)
    pulumi.export("pools", machines.outputs)
    disks = {storage: volume.device for storage, volume in machines.volumes.items()}
    pulumi.export(FILE_SYSTEMS, {**data.devices, **disks})
    pulumi.export("containers", data.container_ids)


def _network(here: SiteProgram[SitePlan], groups: Groups) -> Network:
    args = NetworkArgs(
        names=here.plan.names,
        region=here.plan.region,
        resource_group=groups.cluster,
        base_group=groups.base,
        plan=here.plan.network,
        has_gateway=any(pool.gateway for pool in here.plan.pools),
    )
    return here.make(Network, "network", args)


def _site_routes(
    here: SiteProgram[SitePlan], groups: Groups, network: Network, machines: Machines
) -> None:
    """Make the routes to other sites, through the gateways that are made."""
    made: dict[str, pulumi.Input[str]] = {
        host: machine.private_address for host, machine in machines.named.items()
    }
    gateways = made_gateways(here.plan, here.plan.network.routes, made)
    if gateways:
        args = SiteRoutesArgs(
            names=here.plan.names,
            resource_group=groups.cluster,
            table=network.route_table,
            gateways=gateways,
        )
        here.make(SiteRoutes, "site-routes", args)


def _dns(here: SiteProgram[SitePlan], groups: Groups, network: Network, machines: Machines) -> None:
    plan = here.plan
    zone = parse(plan.dns.existing)
    addresses: dict[str, pulumi.Input[str]] = {
        host: made.private_address for host, made in machines.named.items()
    }
    if plan.api_name:
        name = plan.api_name.removesuffix(f".{plan.dns.domain}")
        addresses[name] = balancer_address(here, groups.cluster, network, machines)
    args = DnsArgs(
        names=here.plan.names,
        resource_group=groups.cluster if zone is None else zone.group,
        domain=plan.dns.domain,
        zone="" if zone is None else zone.name,
        vnet_id=network.vnet_id,
        link=not plan.network.existing,
        addresses=addresses,
    )
    here.make(Dns, "dns", args)


def answers(region: str) -> Answers:
    """Return the placeholders for Azure's responses while a program is recorded."""
    del region
    return {LOGIN: RECORDED_LOGIN, CREDENTIALS: RECORDED_CREDENTIALS}
