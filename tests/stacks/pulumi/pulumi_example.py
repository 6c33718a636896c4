"""A small program on the shared base: a random name, and a VPC with subnets and machines."""

from __future__ import annotations

from collections.abc import Callable

import pulumi
import pulumi_aws as aws
import pulumi_random as random

from gcluster.stacks.pulumi.component import Args, Component, tag_everything
from gcluster.stacks.pulumi.names import Labels, Names

NAMES = Names(cluster="demo", site="east", cloud="aws")
LABELS = Labels(cluster="demo", site="east", spec_hash="0a1b2c3d", owner="ops@example.edu")


class NetworkArgs(Args, frozen=True, kw_only=True):
    """What a network is made from."""

    names: Names
    cidr: str


class Network(Component[NetworkArgs]):
    """A VPC with one private subnet."""

    kind = "example:Network"
    vpc_id: pulumi.Output[str]
    subnet_id: pulumi.Output[str]

    def build(self, args: NetworkArgs) -> None:
        """Make both."""
        vpc = aws.ec2.Vpc(
            args.names("vpc"), cidr_block=args.cidr, tags={"own": "1"}, opts=self.child()
        )
        subnet = aws.ec2.Subnet(
            args.names("compute"), vpc_id=vpc.id, cidr_block="10.0.1.0/24", opts=self.child()
        )
        self.vpc_id = vpc.id
        self.subnet_id = subnet.id


class PoolArgs(Args, frozen=True, kw_only=True):
    """What a pool is made from."""

    names: Names
    name: str
    subnet_id: pulumi.Input[str]
    count: int


class Pool(Component[PoolArgs]):
    """Machines of one kind."""

    kind = "example:Pool"
    addresses: list[pulumi.Output[str]]

    def build(self, args: PoolArgs) -> None:
        """Make the machines."""
        protected = pulumi.ResourceOptions(ignore_changes=["ami"])
        machines = [
            aws.ec2.Instance(
                args.names(args.name, number),
                ami="ami-0abc",
                instance_type="p5.48xlarge",
                subnet_id=args.subnet_id,
                opts=self.child(protected),
            )
            for number in range(args.count)
        ]
        self.addresses = [machine.private_ip for machine in machines]


def program(pools: dict[str, int] | None = None) -> Callable[[], None]:
    """Return a program with these pools: name -> machines."""

    def run() -> None:
        tag_everything(LABELS)
        pet = random.RandomPet(NAMES("pet"), length=2)
        network = Network(NAMES("network"), NetworkArgs(names=NAMES, cidr="10.0.0.0/16"))
        for name, count in (pools or {"gpu": 2}).items():
            args = PoolArgs(names=NAMES, name=name, subnet_id=network.subnet_id, count=count)
            pool = Pool(NAMES(f"pool-{name}"), args)
            pulumi.export(name, pool.addresses)
        pulumi.export("pet", pet.id)

    return run
