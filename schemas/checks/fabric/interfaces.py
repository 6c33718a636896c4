"""Interfaces of machines that carry the GPUs' traffic: of which class, and how many."""

from __future__ import annotations

from collections.abc import Iterator

from ...diagnostics import PathTuple, Severity, listing
from ...spec import Pool
from ..context import CheckContext
from ..registry import Finding, check

_ASKED_FOR = ("aws", "gcp")
"""Clouds whose machines have the interfaces that are requested; elsewhere they come with them."""


def _cloud(context: CheckContext, pool: Pool) -> str | None:
    """Return the provider of a pool's site where that is a cloud."""
    site = context.cloud(pool)
    return None if site is None else site.provider


def _relies_on(name: str) -> tuple[PathTuple, ...]:
    return tuple(("pools", name, key) for key in ("fabric", "machine", "site", "count", "role"))


@check("GC227", summary="The fabric of a pool's nodes is not specified.")
def fabric_unknown(context: CheckContext) -> Iterator[Finding]:
    """The fabric class decides drivers and NCCL's plugin of GPU nodes, in a cloud their interfaces.

    It comes with the machine type, where the catalog knows it. Where it doesn't, the pool names it,
    or `fabric: ethernet` for plain TCP: without, a cloud's nodes would have none of these. Hosts of
    one's own may have been set up by others, so that there it is a warning: the AllReduce that `up`
    ends with can't pass, for of an unknown class no transport is the right one.
    """
    for name, pool in context.pools.items():
        machine = context.machine(pool)
        if machine is None or machine.gpu is None or machine.simulated or not pool.is_compute:
            continue
        cloud, nodes = context.catalog_name(pool), context.size(name)
        if cloud is None or (pool.fabric or machine.fabric) is not None or nodes in {0, 1}:
            continue
        is_cloud = _cloud(context, pool) is not None
        if cloud not in machine.sites or not (is_cloud or pool.hosts is not None):
            continue
        kinds = {nic.kind for nic in machine.nics or () if not nic.front_end}
        fabrics = context.catalog.fabrics.values()
        own = [fabric for fabric in fabrics if cloud in fabric.providers]
        of_cloud = own or [f for f in fabrics if f.rdma and not f.providers]
        fitting = [f.name for f in of_cloud if not kinds or f.nic_kind in kinds]
        yield Finding(
            summary=f'pool "{name}": which fabric class {machine.name} has is not known',
            path=("pools", name, "machine"),
            severity=Severity.ERROR if is_cloud else Severity.WARNING,
            hint=f"write fabric: ethernet for plain TCP{_or_one_of(fitting)}",
            relies_on=_relies_on(name),
        )


def _or_one_of(fabrics: list[str]) -> str:
    return f", or one of {listing(fabrics)}" if fabrics else ""


@check("GC228", summary="How many interfaces carry a pool's fabric is not known.")
def fabric_interfaces_unknown(context: CheckContext) -> Iterator[Finding]:
    """AWS and Google give a machine the interfaces that a request names, card by card.

    So the catalog has to say how many there are: without, nodes would come up with one interface of
    plain Ethernet. `aws ec2 describe-instance-types` has EFA's number and the cards.
    """
    for name, pool in context.pools.items():
        machine, fabric, cloud = context.machine(pool), context.fabric(pool), _cloud(context, pool)
        if machine is None or machine.gpu is None or fabric is None or cloud not in _ASKED_FOR:
            continue
        kind = fabric.nic_kind
        if kind is None or cloud not in machine.sites or cloud not in fabric.providers:
            continue
        if machine.nics is None:
            more = ", network_cards: N" if cloud == "aws" else ""
            yield Finding(
                summary=f'pool "{name}": how many interfaces of {fabric.name} {machine.name} has '
                "is not known",
                path=("pools", name, "fabric" if pool.fabric else "machine"),
                hint=f"write nics: [{{kind: {kind}, count: N}}]{more} at {machine.name} in a file "
                "under catalog, or fabric: ethernet",
                relies_on=_relies_on(name),
            )
