"""Addresses of bare-metal hosts: one for each name, each used once."""

from __future__ import annotations

from collections.abc import Iterator

from ..hostlist import fold
from .context import CheckContext
from .hosts import name_path
from .registry import Finding, check
from .repeats import repeated


@check("GC112", summary="An address range has another length than its name range.")
def address_count(context: CheckContext) -> Iterator[Finding]:
    """`address` names as many addresses as `name` names hosts.

    They are paired in order: the first name with the first address.
    """
    for group in context.host_groups:
        if group.names is None or group.addresses is None:
            continue
        if len(group.names) != len(group.addresses):
            yield Finding(
                summary=f"{len(group.names):,} names but {len(group.addresses):,} addresses "
                f"in {group.written}",
                path=(*group.path, "address"),
                hint="give as many addresses as names",
                relies_on=((*group.path, "address"), name_path(group)),
            )


@check("GC114", summary="Two hosts have the same address.")
def address_given_twice(context: CheckContext) -> Iterator[Finding]:
    """An address belongs to one host.

    Two names with one address would be one machine that is set up as two.
    """
    given = ((group, group.addresses or ()) for group in context.host_groups)
    for group, first, addresses in repeated(given):
        path = (*group.path, "address")
        line = context.line_of((*first.path, "address"))
        yield Finding(
            summary=f"{fold(addresses)} given to two hosts: first in line {line}",
            path=path,
            hint="give each host its own address",
            relies_on=(path, (*first.path, "address")),
        )
