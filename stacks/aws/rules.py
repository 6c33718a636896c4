"""A security group whose every rule is a resource of its own: adding one touches no other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi_aws as aws

from ..pulumi.names import Names

if TYPE_CHECKING:
    import pulumi


ALL = "-1"
"""Every protocol and port."""


def make_group(
    names: Names,
    what: str,
    *,
    vpc_id: pulumi.Input[str],
    why: str,
    opts: pulumi.ResourceOptions,
) -> Group:
    """Make a group without rules; `what` is part of its name and theirs."""
    name = names(what, kind="security-group")
    made = aws.ec2.SecurityGroup(
        name, vpc_id=vpc_id, description=why, tags={"Name": name}, opts=opts
    )
    return Group(names, what, made.id, opts)


class Group:
    """A security group and its rules; what no rule allows is refused."""

    def __init__(
        self, names: Names, what: str, group_id: pulumi.Output[str], opts: pulumi.ResourceOptions
    ) -> None:
        """Hold a group; `what` is part of the names of the rules that are made for it."""
        self._names = names
        self._what = what
        self._opts = opts
        self.id = group_id

    def lets_in(
        self,
        what: str,
        protocol: str = ALL,
        *,
        ports: tuple[int, int] | None = None,
        group: pulumi.Input[str] | None = None,
        cidr: str | None = None,
    ) -> None:
        """Allow traffic from a group or a network; `ports` are the first and the last."""
        make = aws.vpc.SecurityGroupIngressRule
        self._rule(make, f"in-{what}", protocol, ports=ports, group=group, cidr=cidr)

    def lets_out(
        self,
        what: str,
        protocol: str = ALL,
        *,
        ports: tuple[int, int] | None = None,
        group: pulumi.Input[str] | None = None,
        cidr: str | None = None,
    ) -> None:
        """Allow traffic to a group or a network."""
        make = aws.vpc.SecurityGroupEgressRule
        self._rule(make, f"out-{what}", protocol, ports=ports, group=group, cidr=cidr)

    def _rule(
        self,
        make: type[aws.vpc.SecurityGroupIngressRule | aws.vpc.SecurityGroupEgressRule],
        what: str,
        protocol: str,
        *,
        ports: tuple[int, int] | None,
        group: pulumi.Input[str] | None,
        cidr: str | None,
    ) -> None:
        make(
            self._names(f"{self._what}-{what}"),
            security_group_id=self.id,
            ip_protocol=protocol,
            from_port=ports[0] if ports else None,
            to_port=ports[1] if ports else None,
            referenced_security_group_id=group,
            cidr_ipv4=_if_version(cidr, 4),
            cidr_ipv6=_if_version(cidr, 6),
            opts=self._opts,
        )


def _if_version(cidr: str | None, version: int) -> str | None:
    """Return a network where it is of that version of IP."""
    return cidr if cidr is not None and (":" in cidr) == (version == 6) else None  # noqa: PLR2004  # IPv6
