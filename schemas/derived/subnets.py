"""How the network of a cloud's site is divided into subnets, and who takes addresses in which.

Checks and plans divide by the same rules. A subnet's place depends on the network alone, and on the
zone's own number, so that no subnet moves when something is added to a spec.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from ipaddress import IPv4Network
from typing import NamedTuple

from ..spec import CloudSite, LustreStorage, OpenZfsStorage, Pool, Storage

_SLOTS = 16
"""Parts of the upper half of a network of AWS, where it is large enough."""
_LOCAL_ZONE = 8
"""Slots from here on are for Local Zones, which are numbered from 1 too."""
_OCI_PUBLIC_BITS = 5
"""OCI's public subnet is this much smaller than the network, as far as `_OCI_PUBLIC_PREFIX`."""
_OCI_PUBLIC_PREFIX = 28


class Subnet(NamedTuple):
    """A subnet that is made."""

    what: str
    """compute, public, storage, egress, control-plane."""
    network: IPv4Network
    zone: str | None = None
    """The zone that it is in, where it is in one; None: the region, or the cloud's own."""


class TooSmallError(ValueError):
    """A network has no room for the subnets that are made of it."""


def divide(
    provider: str,
    network: IPv4Network,
    longest: int,
    *,
    zones: Sequence[str | None] = (None,),
    managed: bool = False,
) -> tuple[Subnet, ...]:
    """Return the subnets that are made of a site's network.

    Args:
        provider: of the site.
        network: of the site.
        longest: prefix of the smallest subnet that the provider makes.
        zones: that need a subnet where the provider's subnets are in zones, the site's own first.
        managed: whether the provider's own control plane needs a part.

    Raises:
        TooSmallError: they don't fit.
    """
    rule = _RULES.get(provider, _whole)
    found = rule(network, longest, zones, managed)
    if any(subnet.network.prefixlen > longest for subnet in found):
        raise TooSmallError(network)
    return found


def zones_of_site(
    site: CloudSite, pools: Iterable[Pool], storage: Iterable[Storage] = ()
) -> list[str | None]:
    """Return the zones that need a subnet: the site's own first, then sorted.

    Args:
        site: of a cloud.
        pools: of the site.
        storage: of the site; what is made in a zone needs an address there.
    """
    named = {zone for pool in pools for zone in pool.zones}
    named |= {zone for each in storage if (zone := zone_of_storage(each)) is not None}
    return [site.zone, *sorted(named - {site.zone or ""})]


def zone_of_storage(storage: Storage) -> str | None:
    """Return the zone that the spec says for a file system that is made; None: it says none."""
    if isinstance(storage, LustreStorage | OpenZfsStorage) and storage.is_made:
        return storage.zone
    return None


def _whole(
    network: IPv4Network, longest: int, zones: Sequence[str | None], managed: bool
) -> tuple[Subnet, ...]:
    """Google's subnets are of the region, and its fabrics have networks of their own."""
    del longest, zones, managed
    return (Subnet("compute", network),)


def _azure(
    network: IPv4Network, longest: int, zones: Sequence[str | None], managed: bool
) -> tuple[Subnet, ...]:
    """Half for the compute nodes, a quarter for storage, a quarter for the other nodes."""
    del zones, managed
    lower, upper = _halves(network, longest)
    storage, egress = _halves(upper, longest)
    return Subnet("compute", lower), Subnet("storage", storage), Subnet("egress", egress)


def _oci(
    network: IPv4Network, longest: int, zones: Sequence[str | None], managed: bool
) -> tuple[Subnet, ...]:
    """The lower half is private, the end of the upper one public."""
    del zones, managed
    lower, upper = _halves(network, longest)
    small = max(upper.prefixlen, min(network.prefixlen + _OCI_PUBLIC_BITS, _OCI_PUBLIC_PREFIX))
    *_, last = upper.subnets(new_prefix=small)
    return Subnet("compute", lower), Subnet("public", last)


def _aws(
    network: IPv4Network, longest: int, zones: Sequence[str | None], managed: bool
) -> tuple[Subnet, ...]:
    """The site's own zone has half of the network, further zones a slot of the other half.

    The slot is the zone's own number. The last one is public, and the one before is of EKS where
    that runs the control plane: two zones' subnets must fit in it, so of the smallest slots it
    has two.
    """
    lower, upper = _halves(network, longest)
    size = min(upper.prefixlen + _SLOTS.bit_length() - 1, longest)
    slots = list(upper.subnets(new_prefix=size))
    last = len(slots) - 1
    found = [Subnet("compute", lower, zones[0])]
    taken: set[int] = set()
    if managed:
        of_eks = {last - 1} if size < longest else {last - 3, last - 2}
        if min(of_eks) < 0:
            raise TooSmallError(network)
        taken |= of_eks
        part = slots[min(of_eks)]
        found.append(Subnet("control-plane", part if len(of_eks) == 1 else part.supernet()))
    for zone in zones[1:]:
        first = _first_slot(zone or "")
        free = (n % last for n in range(first, first + last) if n % last not in taken)
        slot = next(free, None)
        if slot is None:
            raise TooSmallError(network)
        taken.add(slot)
        found.append(Subnet("compute", slots[slot], zone))
    return (*found, Subnet("public", slots[last]))


def _first_slot(zone: str) -> int:
    """Return the slot of a zone: 4 for use1-az4, those of Local Zones above."""
    number = re.search(r"-az([0-9]+)$", zone)
    is_local = zone.count("-") > 1
    return (int(number[1]) if number else 0) + (_LOCAL_ZONE if is_local else 0)


def _halves(network: IPv4Network, longest: int) -> tuple[IPv4Network, IPv4Network]:
    if network.prefixlen >= longest:
        raise TooSmallError(network)
    lower, upper = network.subnets(prefixlen_diff=1)
    return lower, upper


_Rule = Callable[[IPv4Network, int, Sequence[str | None], bool], tuple[Subnet, ...]]
_RULES: Mapping[str, _Rule] = {"aws": _aws, "azure": _azure, "oci": _oci}


def stands_in(subnet: Subnet, provider: str, site_zone: str | None, pool: Pool) -> bool:
    """Say whether machines of a pool may get their address in a subnet.

    Interfaces that only carry the fabric take none anywhere: EFA-only ones, OCI's RDMA, InfiniBand,
    and Google's in networks of their own.
    """
    if provider == "azure":
        return subnet.what == ("compute" if pool.role == "compute" else "egress")
    is_public = pool.public_address and pool.role != "compute"
    if provider in {"aws", "oci"} and (is_public or subnet.what != "compute"):
        return is_public and subnet.what == "public"
    own: Sequence[str | None] = pool.zones or [site_zone]
    return subnet.zone is None or subnet.zone in own
