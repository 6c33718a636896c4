"""Policies of the nodes, in OCI's language: who may do what, where, and to which things.

Written after the policy references of Core Services and Object Storage (docs.oracle.com, November
2026). Free-form tags can't be asked for in them, so the nodes carry one defined tag.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .plan import GrantPlan

_WRITE = ("OBJECT_CREATE", "OBJECT_OVERWRITE", "OBJECT_DELETE")
_READ = ("OBJECT_INSPECT", "OBJECT_READ")
_START = ("INSTANCE_CREATE", "INSTANCE_INSPECT", "INSTANCE_READ")
_END = ("INSTANCE_UPDATE", "INSTANCE_DELETE")


def members(compartment: str, namespace: str, role: str) -> str:
    """Return the rule of a dynamic group: the compartment's instances with this role's tag."""
    return (
        f"All {{instance.compartment.id = '{compartment}', tag.{namespace}.role.value = '{role}'}}"
    )


def bucket_statements(group: str, compartment: str, grants: Iterable[GrantPlan]) -> Iterator[str]:
    """Yield what nodes may do in the buckets that they mount: list, read and, if asked, write."""
    for grant in grants:
        where = f"target.bucket.name='{grant.bucket}'"
        yield _allow(group, "read buckets", compartment, where)
        inside = [where]
        if grant.prefix:
            inside.append(f"target.object.name=/{grant.prefix}*/")
        rights = (*_READ, *(_WRITE if grant.write else ()))
        inside.append(_any(rights))
        yield _allow(group, "manage objects", compartment, f"all {{{', '.join(inside)}}}")


def burst_statements(group: str, compartment: str, namespace: str) -> Iterator[str]:
    """Yield what the controller needs to start and end elastic nodes, and to read their consoles.

    It may change and end only what carries the nodes' tag: not itself, and nobody else's machines.
    """
    nodes = f"target.resource.tag.{namespace}.role='node'"
    yield _allow(group, "manage instances", compartment, _any(_START))
    yield _allow(group, "manage instances", compartment, f"all {{{nodes}, {_any(_END)}}}")
    yield _allow(group, "manage console-histories", compartment)
    for used in (
        "read instance-configurations",
        "read instance-images",
        "use compute-clusters",
        "use compute-capacity-reservations",
        "use subnets",
        "use network-security-groups",
        "manage vnics",
        "inspect vnic-attachments",
    ):
        yield _allow(group, used, compartment)
    yield _allow(
        group, "use tag-namespaces", compartment, f"target.tag-namespace.name='{namespace}'"
    )


def lustre_statement(compartment: str) -> str:
    """Return what the service needs to stand in a subnet ("Managing File Storage with Lustre")."""
    return f"Allow service lustrefs to use virtual-network-family in compartment id {compartment}"


def _allow(group: str, what: str, compartment: str, where: str = "") -> str:
    condition = f" where {where}" if where else ""
    return f"Allow dynamic-group {group} to {what} in compartment id {compartment}{condition}"


def _any(permissions: Iterable[str]) -> str:
    named = ", ".join(f"request.permission='{permission}'" for permission in permissions)
    return f"any {{{named}}}"
