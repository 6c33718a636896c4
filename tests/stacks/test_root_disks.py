"""Machines of all clouds boot from disks that hold drivers and containers, not only the image."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from tests.pulumi_double.sites import CloudSite, cloud_sites

from gcluster.schemas.spec import Pool

SITES = {site.cloud: site for site in reversed(cloud_sites())}
SIZES = {"volumeSize", "diskSizeGB", "diskSizeGb", "bootVolumeSizeInGbs"}
"""What AWS, Azure, Google and OCI call the size of a disk to boot from."""
DISK = next(p.disk for site in cloud_sites() for p in site.spec.pools.values() if p.disk)
ENOUGH = 200
every_cloud = pytest.mark.parametrize("cloud", sorted(SITES))


def sizes(value: Any) -> Iterator[int]:
    """Yield the sizes of disks in a resource's inputs, in GiB."""
    if isinstance(value, list):
        for item in value:
            yield from sizes(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key in SIZES:
                yield int(item)
            else:
                yield from sizes(item)


def booted(site: CloudSite, **pool: object) -> list[int]:
    """Return the boot disks of a site whose pools all have these fields."""

    def changed(each: Pool) -> Pool:
        return msgspec.structs.replace(each, **pool)

    pools = {name: changed(each) for name, each in site.spec.pools.items()}
    made = msgspec.structs.replace(site, spec=msgspec.structs.replace(site.spec, pools=pools))
    machines = [r for r in made.recorded().resources if not r.type.endswith((":Disk", ":Volume"))]
    return [size for r in machines for size in sizes(msgspec.to_builtins(r.inputs))]


@every_cloud
def test_by_default_the_boot_disk_is_larger_than_the_image(cloud: str) -> None:
    found = booted(SITES[cloud], disk=None)
    assert found
    assert min(found) >= ENOUGH


@every_cloud
def test_a_size_that_the_spec_has_is_the_boot_disk_of_every_machine(cloud: str) -> None:
    assert DISK is not None
    assert set(booted(SITES[cloud], disk=DISK)) == {math.ceil(DISK.value / 2**30)}
