"""Machines: placement groups, a launch template for each offer, and the nodes of fixed pools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pulumi
import pulumi_aws as aws

from ...pulumi.component import Args, Component
from ...pulumi.names import HOST, OFFER, POOL, Names
from ..plan.types import MadeNode, OfferPlan, PlacementPlan, PoolPlan
from .templates import launch_template


class PlacementsArgs(Args, frozen=True):
    """What the placement groups are made from."""

    names: Names
    plans: tuple[PlacementPlan, ...]


class Placements(Component[PlacementsArgs]):
    """Placement groups, one for each fabric domain; those that exist are used by their name."""

    kind = "aws:Placements"
    groups: dict[str, pulumi.Output[str]]
    """Key of the plan -> name of the group."""

    def build(self, args: PlacementsArgs) -> None:
        """Make the groups."""
        self.groups = {plan.key: self._group(args, plan) for plan in args.plans}

    def _group(self, args: PlacementsArgs, plan: PlacementPlan) -> pulumi.Output[str]:
        if plan.existing is not None:
            return pulumi.Output.from_input(plan.existing)
        return aws.ec2.PlacementGroup(
            args.names(plan.key), strategy=plan.strategy, opts=self.child()
        ).name


class NodePoolArgs(Args, frozen=True):
    """What a pool is made from."""

    names: Names
    plan: PoolPlan
    offers: Mapping[str, OfferPlan]
    """Fixed node -> what it is bought by, of the nodes that are made."""
    block: str | None
    """Id of a capacity block that was bought for the pool before."""
    offerings: Mapping[str, str]
    """Key of each offer -> id of the offered block that it buys; "": not queried yet."""
    subnets: Mapping[str, pulumi.Input[str]]
    """Key of each offer -> subnet."""
    internet: pulumi.Resource | None
    """Gateway without which EC2 gives no node an address (Gateway.NotAttached)."""
    security_groups: Sequence[pulumi.Input[str]]
    placements: dict[str, pulumi.Output[str]]
    profile: pulumi.Input[str]
    kms_key: str | None
    user_data: pulumi.Input[str]
    """Base64."""
    tags: dict[str, str]
    """Tags of what EC2 makes from a template: nodes, disks, interfaces."""
    made: Mapping[str, MadeNode]
    """Resource -> what the stack made it from, of the nodes that exist."""


class NodePool(Component[NodePoolArgs]):
    """A pool: launch templates, and one instance resource for each fixed node.

    Fixed nodes are instances of their own and not a fleet or a scaling group: gpu003 stays gpu003
    when gpu001 is replaced, a plan shows which node it changes, and a node that fails is not
    replaced without the scheduler. That is no launch for all or none: docs/aws.md has the
    alternatives, and `lifecycle/planning/purchase` releases what fell short. An elastic pool has a
    template for each offer, for `elastic.py` to choose from; a fixed one only those of the offers
    in use. Elastic nodes under EKS have a group of their own (`eks_elastic.py`).
    """

    kind = "aws:NodePool"
    templates: dict[str, pulumi.Output[str]]
    """Key of an offer -> launch template."""
    instance_ids: dict[str, pulumi.Output[str]]
    """Node -> instance."""
    addresses: dict[str, pulumi.Output[str]]
    """Node -> private address."""
    public_addresses: dict[str, pulumi.Output[str]]
    """Node -> its own address; only of login and controller nodes that request one."""
    interfaces: dict[str, pulumi.Output[str]]
    """Node -> its interface with that address."""

    def build(self, args: NodePoolArgs) -> None:
        """Make templates and nodes."""
        free = [offer for offer in args.plan.offers if offer.option.buy_hours is None]
        idle = [] if args.offers else free[:1]
        others = free if args.plan.elastic and not args.plan.joins_eks else idle
        offers = {offer.key: offer for offer in (*args.offers.values(), *others)}
        templates = {
            key: self._template(args, offer, self._block(args, offer))
            for key, offer in offers.items()
        }
        nodes = dict(self._nodes(args, templates))
        self.templates = {key: template.id for key, template in templates.items()}
        self.instance_ids = {name: node.id for name, node in nodes.items()}
        self.addresses = {name: node.private_ip for name, node in nodes.items()}
        self.interfaces = {name: node.primary_network_interface_id for name, node in nodes.items()}
        self.public_addresses = {}
        if args.plan.public:
            self.public_addresses = {
                name: self._address(args, name, node) for name, node in nodes.items()
            }

    def _block(self, args: NodePoolArgs, offer: OfferPlan) -> pulumi.Output[str] | None:
        """Return the block of an offer that buys one: that which is there, else buy it.

        Only an offer that nodes are on gets here, and a pool has one block.
        """
        plan = args.plan
        if offer.option.buy_hours is None:
            return None
        if args.block is not None:
            return pulumi.Output.from_input(args.block)
        offering = args.offerings[offer.key] or f"${{the earliest on offer in {offer.zone}}}"
        wanted = CapacityBlockArgs(names=args.names, pool=plan.name, offering=offering)
        name = args.names(f"block-{plan.name}")
        return CapacityBlock(name, wanted, self.child()).reservation_id

    def _template(
        self, args: NodePoolArgs, offer: OfferPlan, block: pulumi.Output[str] | None
    ) -> aws.ec2.LaunchTemplate:
        tags = {**args.tags, POOL: args.plan.name, OFFER: offer.key}
        return launch_template(
            args.names(f"{args.plan.name}-{offer.key}"),
            pool=args.plan,
            offer=offer,
            subnet_id=args.subnets[offer.key],
            security_groups=args.security_groups,
            placement=args.placements[offer.placement] if offer.placement else None,
            profile=args.profile,
            kms_key=args.kms_key,
            user_data=args.user_data,
            block=block,
            tags=tags,
            opts=self.child(),
        )

    def _nodes(
        self, args: NodePoolArgs, templates: Mapping[str, aws.ec2.LaunchTemplate]
    ) -> Iterator[tuple[str, aws.ec2.Instance]]:
        """Yield the fixed nodes.

        A template's new version is for new nodes: it contains the first-start configuration, which
        no longer matters to running ones. What needs another machine (type, image, offer) is set on
        the instance itself, where a plan shows it. A node that was bought by another offer is
        replaced: it can't move. Nodes of EKS have their template's image: another one is for new
        nodes, and for those that `gcluster repair` recreates, a few at a time.

        The engine restores ignored inputs of a replacement too, which would be made from the old
        template (pulumi, pkg/resource/deploy/step_generator.go: `processIgnoreChanges` wherever
        there is an old resource; read 2026-11). So nothing is ignored of a node to be made again.
        The old machine goes first: a reservation or a block has no room for both.
        """
        plan = args.plan
        for name, offer in args.offers.items():
            template = templates[offer.key]
            ami = plan.image.ami if plan.image.is_fixed and not plan.joins_eks else None
            wanted = MadeNode(offer=offer.key, ami=ami, machine=plan.machine)
            keep = pulumi.ResourceOptions(
                ignore_changes=["launch_template"]
                if args.made.get(args.names(name), wanted).stays(wanted)
                else [],
                replace_on_changes=[f"tags.{OFFER}"],
                delete_before_replace=plan.role == "compute",
            )
            tags = {
                **plan.tags,
                "Name": f"{args.names.cluster}-{name}",
                HOST: name,
                POOL: plan.name,
                OFFER: offer.key,
            }
            yield (
                name,
                aws.ec2.Instance(
                    args.names(name),
                    instance_type=plan.machine,
                    ami=ami,
                    launch_template=aws.ec2.InstanceLaunchTemplateArgs(
                        id=template.id,
                        version=template.latest_version.apply(str),
                    ),
                    instance_market_options=_market(offer),
                    source_dest_check=False if plan.gateway else None,
                    tags=tags,
                    opts=self.child(keep),
                ),
            )

    def _address(self, args: NodePoolArgs, name: str, node: aws.ec2.Instance) -> pulumi.Output[str]:
        """Give a node an address that it keeps when it is stopped or replaced."""
        what = args.names(f"address-{name}")
        address = aws.ec2.Eip(what, domain="vpc", tags={"Name": what}, opts=self.child())
        after = pulumi.ResourceOptions(depends_on=[args.internet] if args.internet else None)
        aws.ec2.EipAssociation(
            what, instance_id=node.id, allocation_id=address.id, opts=self.child(after)
        )
        return address.public_ip


def _market(offer: OfferPlan) -> aws.ec2.InstanceInstanceMarketOptionsArgs | None:
    """Return how a spot node is bought.

    It is set on the node, not in the template: a fleet sets it itself and accepts no template that
    sets it too.
    """
    option = offer.option
    if option.market != "spot":
        return None
    limit = None if option.max_usd_per_hour is None else f"{option.max_usd_per_hour:g}"
    return aws.ec2.InstanceInstanceMarketOptionsArgs(
        market_type="spot",
        spot_options=aws.ec2.InstanceInstanceMarketOptionsSpotOptionsArgs(
            max_price=limit,
            spot_instance_type="one-time",
            instance_interruption_behavior="terminate",
        ),
    )


class CapacityBlockArgs(Args, frozen=True):
    """What is bought."""

    names: Names
    pool: str
    offering: str
    """Id of the block on offer: chosen before, so that just the one is bought that was shown."""


class CapacityBlock(Component[CapacityBlockArgs]):
    """A capacity block that was on offer.

    Only the run that buys it has it in its program: later ones find it by its tags and use its id
    (`plan/purchase.py`), so that no update ever buys it again. Then the stack lets go of it and
    nothing is deleted, because nothing is paid back: it ends by itself.
    """

    kind = "aws:CapacityBlock"
    reservation_id: pulumi.Output[str]

    def build(self, args: CapacityBlockArgs) -> None:
        """Buy it, once."""
        once = pulumi.ResourceOptions(
            ignore_changes=["capacityBlockOfferingId"], retain_on_delete=True
        )
        self.reservation_id = aws.ec2.CapacityBlockReservation(
            args.names(f"block-{args.pool}"),
            capacity_block_offering_id=args.offering,
            instance_platform="Linux/UNIX",
            tags={POOL: args.pool},
            opts=self.child(once),
        ).id
