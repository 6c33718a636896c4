"""The division of clouds' networks holds for every size of network, zone and provider."""

from __future__ import annotations

from ipaddress import IPv4Network
from itertools import combinations

import pytest

from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.derived.subnets import Subnet, TooSmallError, divide

CATALOG = load_catalog()
CLOUDS = ("aws", "azure", "gcp", "oci")
ZONES = ("use1-az4", "use1-az1", "use1-az6", "use1-dfw2-az1")


def divided(provider: str, prefix: int, **requested: object) -> tuple[Subnet, ...] | None:
    _, longest = CATALOG.providers[provider].subnet_prefixes
    network = IPv4Network((int(IPv4Network("10.32.0.0/11")[0]), prefix))
    try:
        return divide(provider, network, longest, **requested)  # type: ignore[arg-type]
    except TooSmallError:
        return None


@pytest.mark.parametrize("provider", CLOUDS)
@pytest.mark.parametrize("managed", [False, True])
@pytest.mark.parametrize("zones", [ZONES[:1], ZONES[:2], ZONES])
def test_subnets_are_of_sizes_that_the_cloud_makes_and_apart(
    provider: str, zones: tuple[str, ...], *, managed: bool
) -> None:
    shortest, longest = CATALOG.providers[provider].subnet_prefixes
    sizes = []
    for prefix in range(max(11, shortest), longest + 1):
        subnets = divided(provider, prefix, zones=zones, managed=managed)
        if subnets is None:
            continue
        sizes.append(prefix)
        whole = IPv4Network((int(IPv4Network("10.32.0.0/11")[0]), prefix))
        for subnet in subnets:
            assert subnet.network.subnet_of(whole)
            assert shortest <= subnet.network.prefixlen <= longest
        for one, other in combinations(subnets, 2):
            assert not one.network.overlaps(other.network)
        compute = [subnet.zone for subnet in subnets if subnet.what == "compute"]
        assert compute == (list(zones) if provider == "aws" else [None])
    # What fits in a network fits in every larger one.
    assert sizes == list(range(max(11, shortest), sizes[-1] + 1))


@pytest.mark.parametrize(
    ("provider", "smallest"), [("aws", 27), ("azure", 27), ("gcp", 29), ("oci", 29)]
)
def test_the_smallest_network_of_a_cloud(provider: str, smallest: int) -> None:
    assert divided(provider, smallest) is not None
    assert divided(provider, smallest + 1) is None


def test_naming_another_zone_moves_no_subnet() -> None:
    for prefix in (16, 20, 23):
        one = divided("aws", prefix, zones=ZONES[:2]) or ()
        three = divided("aws", prefix, zones=(*ZONES[:2], "use1-az5")) or ()
        assert set(one) < set(three)
