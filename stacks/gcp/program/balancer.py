"""The internal load balancer before several API servers."""

from __future__ import annotations

from collections.abc import Mapping

import pulumi
import pulumi_gcp as gcp

from ....schemas.derived.control_planes import API_PORT
from ...pulumi.component import Args, Component
from ...pulumi.names import Names
from ..plan.facts import facts
from ..plan.layout import SitePlan
from .compute import Pool

_PORT_NAME = "api"
_IDLE_S = 3600
"""Idle timeout of a connection in seconds: watches may be idle for minutes."""


class ApiBalancerArgs(Args, frozen=True, kw_only=True):
    """What the load balancer is made from."""

    names: Names
    project: str
    region: str
    network_id: pulumi.Input[str]
    subnet_id: pulumi.Input[str]
    tag: str
    """Network tag of the control planes."""
    made_network: bool
    """The network is ours: what the proxies need in it is made too."""
    machines: Mapping[str, pulumi.Input[str]]
    """Control plane -> its machine's link."""
    zones: Mapping[str, str]


class ApiBalancer(Component[ApiBalancerArgs]):
    """An internal regional proxy load balancer.

    It isn't the passthrough one: with that a request of a machine behind it to the common address
    is always balanced to itself, so no control plane could join (Google Cloud, "Internal
    passthrough Network Load Balancers: requests from a VM that is a backend", November 2026). In an
    existing network its owner must provide the proxies' subnet and allow proxies and probes.
    """

    kind = "gcp:ApiBalancer"
    address: pulumi.Output[str]

    def build(self, args: ApiBalancerArgs) -> None:
        """Make groups, backend, proxy and its address."""
        name = args.names("api")
        proxies = [self._proxies(args), self._proxy_firewall(args)] if args.made_network else []
        check = gcp.compute.RegionHealthCheck(
            name,
            project=args.project,
            region=args.region,
            description=args.names.description,
            check_interval_sec=10,
            healthy_threshold=2,
            unhealthy_threshold=2,
            https_health_check=gcp.compute.RegionHealthCheckHttpsHealthCheckArgs(
                port=API_PORT, request_path="/readyz"
            ),
            opts=self.child(),
        )
        backend = gcp.compute.RegionBackendService(
            name,
            project=args.project,
            region=args.region,
            description=args.names.description,
            protocol="TCP",
            load_balancing_scheme="INTERNAL_MANAGED",
            port_name=_PORT_NAME,
            timeout_sec=_IDLE_S,
            health_checks=check.id,
            backends=[
                gcp.compute.RegionBackendServiceBackendArgs(
                    group=group, balancing_mode="UTILIZATION", capacity_scaler=1.0
                )
                for group in self._groups(args)
            ],
            opts=self.child(),
        )
        proxy = gcp.compute.RegionTargetTcpProxy(
            name,
            project=args.project,
            region=args.region,
            description=args.names.description,
            backend_service=backend.id,
            opts=self.child(),
        )
        rule = gcp.compute.ForwardingRule(
            name,
            project=args.project,
            region=args.region,
            description=args.names.description,
            load_balancing_scheme="INTERNAL_MANAGED",
            ip_protocol="TCP",
            port_range=str(API_PORT),
            network=args.network_id,
            subnetwork=args.subnet_id,
            target=proxy.id,
            opts=self.child(pulumi.ResourceOptions(depends_on=proxies)),
        )
        self.address = rule.ip_address

    def _groups(self, args: ApiBalancerArgs) -> list[pulumi.Output[str]]:
        """Make a group in each zone: an instance group is of one."""
        zones = sorted(set(args.zones.values()))
        return [
            gcp.compute.InstanceGroup(
                args.names(f"api-{zone}"),
                project=args.project,
                zone=zone,
                description=args.names.description,
                network=args.network_id,
                instances=[
                    link for host, link in args.machines.items() if args.zones[host] == zone
                ],
                named_ports=[
                    gcp.compute.InstanceGroupNamedPortArgs(name=_PORT_NAME, port=API_PORT)
                ],
                opts=self.child(),
            ).self_link
            for zone in zones
        ]

    def _proxies(self, args: ApiBalancerArgs) -> pulumi.Resource:
        return gcp.compute.Subnetwork(
            args.names("proxies"),
            project=args.project,
            region=args.region,
            network=args.network_id,
            description=args.names.description,
            ip_cidr_range=facts().proxy_range,
            purpose="REGIONAL_MANAGED_PROXY",
            role="ACTIVE",
            opts=self.child(),
        )

    def _proxy_firewall(self, args: ApiBalancerArgs) -> pulumi.Resource:
        return gcp.compute.Firewall(
            args.names("api"),
            project=args.project,
            network=args.network_id,
            description=args.names.description,
            direction="INGRESS",
            source_ranges=[facts().proxy_range, *facts().probe_ranges],
            target_tags=[args.tag],
            allows=[gcp.compute.FirewallAllowArgs(protocol="tcp", ports=[str(API_PORT)])],
            opts=self.child(),
        )


def before_controllers(
    plan: SitePlan,
    names: Names,
    network_id: pulumi.Input[str],
    subnet_id: pulumi.Input[str],
    pools: Mapping[str, Pool],
) -> ApiBalancer:
    """Make the load balancer before a site's controllers."""
    planes = [pools[pool.name] for pool in plan.pools if pool.role == "controller"]
    args = ApiBalancerArgs(
        names=names,
        project=plan.project,
        region=plan.region,
        network_id=network_id,
        subnet_id=subnet_id,
        tag=names("api"),
        made_network=plan.network.vpc is None,
        machines={host: link for pool in planes for host, link in pool.links.items()},
        zones={host: zone for pool in planes for host, zone in pool.zones.items()},
    )
    return ApiBalancer(names("api"), args)
