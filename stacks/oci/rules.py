"""A network security group whose rules are resources of their own: one more touches no other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi_oci as oci

from ..pulumi.names import Names

if TYPE_CHECKING:
    import pulumi


TCP = "6"
ALL = "all"
"""Protocols, by their number (CreateNetworkSecurityGroupSecurityRule)."""
_GROUP = "NETWORK_SECURITY_GROUP"
_CIDR = "CIDR_BLOCK"


class Group:
    """A group and its rules; what no rule allows is refused. Rules remember connections."""

    def __init__(
        self,
        names: Names,
        what: str,
        group_id: pulumi.Input[str],
        opts: pulumi.ResourceOptions,
    ) -> None:
        """Hold a group that exists; `what` is part of the names of the rules made for it."""
        self._names = names
        self._what = what
        self._opts = opts
        self.id = group_id

    def lets_in(
        self,
        what: str,
        *,
        port: int | None = None,
        group: pulumi.Input[str] | None = None,
        cidr: str | None = None,
    ) -> None:
        """Allow traffic from a group or a network: to one TCP port, else of every protocol."""
        oci.core.NetworkSecurityGroupSecurityRule(
            self._names(f"{self._what}-in-{what}"),
            network_security_group_id=self.id,
            direction="INGRESS",
            protocol=ALL if port is None else TCP,
            source=cidr or group,
            source_type=_CIDR if cidr else _GROUP,
            stateless=False,
            tcp_options=_port(port),
            opts=self._opts,
        )

    def lets_out(
        self,
        what: str,
        *,
        port: int | None = None,
        group: pulumi.Input[str] | None = None,
        cidr: str | None = None,
    ) -> None:
        """Allow traffic to a group or a network."""
        oci.core.NetworkSecurityGroupSecurityRule(
            self._names(f"{self._what}-out-{what}"),
            network_security_group_id=self.id,
            direction="EGRESS",
            protocol=ALL if port is None else TCP,
            destination=cidr or group,
            destination_type=_CIDR if cidr else _GROUP,
            stateless=False,
            tcp_options=_port(port),
            opts=self._opts,
        )


def make_group(
    names: Names,
    what: str,
    *,
    compartment: str,
    vcn_id: pulumi.Input[str],
    opts: pulumi.ResourceOptions,
) -> Group:
    """Make a group without rules; `what` is part of its name and theirs."""
    made = oci.core.NetworkSecurityGroup(
        names(what), compartment_id=compartment, vcn_id=vcn_id, display_name=names(what), opts=opts
    )
    return Group(names, what, made.id, opts)


def _port(port: int | None) -> oci.core.NetworkSecurityGroupSecurityRuleTcpOptionsArgs | None:
    if port is None:
        return None
    only = oci.core.NetworkSecurityGroupSecurityRuleTcpOptionsDestinationPortRangeArgs(
        min=port, max=port
    )
    return oci.core.NetworkSecurityGroupSecurityRuleTcpOptionsArgs(destination_port_range=only)
