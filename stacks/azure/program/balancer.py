"""The load balancer before several API servers of ours."""

from __future__ import annotations

from collections.abc import Mapping

import pulumi
from pulumi_azure_native import network

from ....schemas.derived.control_planes import API_PORT
from ...pulumi.component import Args, Component
from ...pulumi.names import Names
from ...pulumi.program import SiteProgram
from ..plan.types import SitePlan
from .machines import Machines
from .network import Network

_PART = "api"
"""What its only frontend, group of servers and probe are called."""
_IDLE_MIN = 30
"""Minutes that a silent connection stays, the most that there is: watches may say nothing."""


class ApiBalancerArgs(Args, frozen=True, kw_only=True):
    """What the load balancer is made from."""

    names: Names
    region: str
    subscription: str
    resource_group: pulumi.Input[str]
    subnet_id: pulumi.Input[str]
    vnet_id: pulumi.Input[str]
    addresses: Mapping[str, pulumi.Input[str]]
    """Control plane -> private address."""


class ApiBalancer(Component[ApiBalancerArgs]):
    """A standard load balancer without an address outside.

    A machine behind it that is handed to itself gets no answer (learn.microsoft.com, "Troubleshoot
    Azure Load Balancer: backend traffic from the same VM", November 2026): so control planes call
    themselves by that name once they serve, which the role kubernetes sees to.
    """

    kind = "azure:ApiBalancer"
    address: pulumi.Output[str]

    def build(self, args: ApiBalancerArgs) -> None:
        """Make it, with its rule."""
        name = args.names("api")
        head = pulumi.Output.concat(
            f"/subscriptions/{args.subscription}/resourceGroups/",
            args.resource_group,
            f"/providers/Microsoft.Network/loadBalancers/{name}",
        )

        def part(kind: str) -> network.SubResourceArgs:
            return network.SubResourceArgs(id=pulumi.Output.concat(head, f"/{kind}/{_PART}"))

        made = network.LoadBalancer(
            name,
            load_balancer_name=name,
            resource_group_name=args.resource_group,
            location=args.region,
            sku=network.LoadBalancerSkuArgs(name="Standard"),
            frontend_ip_configurations=[
                network.FrontendIPConfigurationArgs(
                    name=_PART,
                    private_ip_allocation_method="Dynamic",
                    subnet=network.SubnetArgs(id=args.subnet_id),
                )
            ],
            backend_address_pools=[self._servers(args)],
            probes=[
                network.ProbeArgs(
                    name=_PART,
                    protocol="Https",
                    port=API_PORT,
                    request_path="/readyz",
                    interval_in_seconds=5,
                    probe_threshold=2,
                )
            ],
            load_balancing_rules=[
                network.LoadBalancingRuleArgs(
                    name=_PART,
                    protocol="Tcp",
                    frontend_port=API_PORT,
                    backend_port=API_PORT,
                    idle_timeout_in_minutes=_IDLE_MIN,
                    enable_tcp_reset=True,
                    disable_outbound_snat=True,
                    frontend_ip_configuration=part("frontendIPConfigurations"),
                    backend_address_pool=part("backendAddressPools"),
                    probe=part("probes"),
                )
            ],
            opts=self.child(),
        )
        self.address = made.frontend_ip_configurations.apply(
            lambda parts: (parts[0].private_ip_address or "") if parts else ""
        )

    def _servers(self, args: ApiBalancerArgs) -> network.BackendAddressPoolArgs:
        """Return the servers by their addresses: their machines are made as if there were none."""
        return network.BackendAddressPoolArgs(
            name=_PART,
            load_balancer_backend_addresses=[
                network.LoadBalancerBackendAddressArgs(
                    name=host,
                    ip_address=address,
                    virtual_network=network.SubResourceArgs(id=args.vnet_id),
                )
                for host, address in args.addresses.items()
            ],
        )


def balancer_address(
    here: SiteProgram[SitePlan], group: pulumi.Output[str], network: Network, machines: Machines
) -> pulumi.Output[str]:
    """Make the load balancer before a site's controllers, and return its address."""
    plan = here.plan
    hosts = [host for p in plan.pools if p.role == "controller" for host in p.nodes]
    made = here.make(
        ApiBalancer,
        "api",
        ApiBalancerArgs(
            names=here.plan.names,
            region=plan.region,
            subscription=plan.subscription,
            resource_group=group,
            subnet_id=network.subnet_ids["compute"],
            vnet_id=network.vnet_id,
            addresses={
                host: machines.named[host].private_address
                for host in hosts
                if host in machines.named
            },
        ),
    )
    return made.address
