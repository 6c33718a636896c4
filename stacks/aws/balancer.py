"""The internal load balancer before several API servers, and its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pulumi
import pulumi_aws as aws

from ...schemas.derived.control_planes import API_PORT
from ..pulumi.component import Args, Component
from ..pulumi.names import Names


class ApiBalancerArgs(Args, frozen=True):
    """What the load balancer is made from."""

    names: Names
    name: str
    """Its name, which the API servers' certificates say too."""
    zone_id: pulumi.Input[str]
    vpc_id: pulumi.Input[str]
    subnets: Sequence[pulumi.Input[str]]
    groups: Sequence[pulumi.Input[str]]
    """Security groups: the nodes' own, so that nodes reach it and it reaches them."""
    instances: Mapping[str, pulumi.Input[str]]
    """Control plane -> instance."""


class ApiBalancer(Component[ApiBalancerArgs]):
    """A network load balancer without an address outside.

    Clients' addresses are not kept: with them, a control plane that asks the balancer and is handed
    to itself would get no answer (Elastic Load Balancing, "Troubleshoot your Network Load Balancer:
    requests time out for connections from a target to its load balancer", November 2026).
    """

    kind = "aws:ApiBalancer"
    dns_name: pulumi.Output[str]

    def build(self, args: ApiBalancerArgs) -> None:
        """Make balancer, targets and the name."""
        name = args.names("api", kind="load-balancer")
        balancer = aws.lb.LoadBalancer(
            name,
            internal=True,
            load_balancer_type="network",
            subnets=list(args.subnets),
            security_groups=list(args.groups),
            enable_cross_zone_load_balancing=True,
            opts=self.child(),
        )
        targets = aws.lb.TargetGroup(
            name,
            vpc_id=args.vpc_id,
            port=API_PORT,
            protocol="TCP",
            target_type="instance",
            preserve_client_ip="false",
            deregistration_delay=30,
            health_check=aws.lb.TargetGroupHealthCheckArgs(
                protocol="HTTPS",
                path="/readyz",
                interval=10,
                healthy_threshold=2,
                unhealthy_threshold=2,
            ),
            opts=self.child(),
        )
        aws.lb.Listener(
            args.names("api"),
            load_balancer_arn=balancer.arn,
            port=API_PORT,
            protocol="TCP",
            default_actions=[
                aws.lb.ListenerDefaultActionArgs(type="forward", target_group_arn=targets.arn)
            ],
            opts=self.child(),
        )
        for host, instance in args.instances.items():
            aws.lb.TargetGroupAttachment(
                args.names(f"api-{host}"),
                target_group_arn=targets.arn,
                target_id=instance,
                port=API_PORT,
                opts=self.child(),
            )
        aws.route53.Record(
            args.names("api"),
            zone_id=args.zone_id,
            name=args.name,
            type="A",
            aliases=[
                aws.route53.RecordAliasArgs(
                    name=balancer.dns_name, zone_id=balancer.zone_id, evaluate_target_health=False
                )
            ],
            opts=self.child(),
        )
        self.dns_name = balancer.dns_name
