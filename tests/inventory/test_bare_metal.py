"""Bare-metal hosts: ranges, entries, and the site's settings below them."""

from __future__ import annotations

import pytest

from gcluster.inventory.bare_metal import bare_metal_hosts
from gcluster.inventory.hosts import Host, Placement, SshTarget
from gcluster.schemas.derived.hostlist import HostlistError
from gcluster.schemas.spec import (
    BareMetalSite,
    ClusterSpec,
    HostEntry,
    LocalSite,
    Pool,
    SlurmScheduler,
    Ssh,
)

SSH = Ssh(user="ops", key="~/.ssh/id", port=2200, bastion="jump", known_hosts="/known")


def hosts_of(*entries: str | HostEntry, machine: str | None = "dgx-h100") -> tuple[Host, ...]:
    pools = {
        "gpu": Pool(site="campus", machine=machine, hosts=list(entries)),
        "elsewhere": Pool(site="here", count=2, machine="sim.h100x8"),
    }
    spec = ClusterSpec(
        api_version="gcluster/v1",
        name="demo",
        sites={"campus": BareMetalSite(ssh=SSH), "here": LocalSite()},
        pools=pools,
        scheduler=SlurmScheduler(),
    )
    return bare_metal_hosts(spec, "campus")


def test_a_range_gives_its_hosts_in_order_with_the_settings_of_the_site() -> None:
    first, second = hosts_of("gpu[009-010]")
    assert first == Host(
        name="gpu009",
        site="campus",
        pool="gpu",
        role="compute",
        machine="dgx-h100",
        address="gpu009",
        ssh=SshTarget(
            user="ops", port=2200, key_file="~/.ssh/id", bastion="jump", known_hosts_file="/known"
        ),
    )
    assert second.name == "gpu010"


def test_hosts_of_other_sites_are_left_out() -> None:
    assert {host.pool for host in hosts_of("gpu1")} == {"gpu"}


def test_an_entry_overrides_the_site_and_pins_its_key() -> None:
    entry = HostEntry(
        name="gpu1",
        address="10.0.0.1",
        user="root",
        port=22,
        bastion="other",
        host_key="ssh-ed25519 AAAA",
        block="su1",
        leaf="leaf1",
    )
    (host,) = hosts_of(entry)
    assert host.address == "10.0.0.1"
    assert host.placement == Placement(block="su1", leaf="leaf1")
    assert host.ssh == SshTarget(
        user="root",
        port=22,
        key_file="~/.ssh/id",
        bastion="other",
        host_keys=("ssh-ed25519 AAAA",),
        known_hosts_file="/known",
    )


def test_addresses_are_paired_with_names_one_by_one() -> None:
    hosts = hosts_of(HostEntry(name="r[1-2]n[01-02]", address="10.0.[7-8].[1-2]"))
    assert [(host.name, host.address) for host in hosts] == [
        ("r1n01", "10.0.7.1"),
        ("r1n02", "10.0.7.2"),
        ("r2n01", "10.0.8.1"),
        ("r2n02", "10.0.8.2"),
    ]


def test_hosts_are_taken_as_they_are_written_and_mixed_with_entries() -> None:
    hosts = hosts_of("b[2-3]", HostEntry(name="a1"), "c,d")
    assert [host.name for host in hosts] == ["b2", "b3", "a1", "c", "d"]


def test_fewer_addresses_than_names_is_an_error_that_has_both_numbers() -> None:
    with pytest.raises(HostlistError, match=r"names 3 hosts.*2 addresses"):
        hosts_of(HostEntry(name="gpu[1-3]", address="10.0.0.[1-2]"))


def test_a_site_that_makes_its_machines_is_refused() -> None:
    spec = ClusterSpec(
        api_version="gcluster/v1",
        name="demo",
        sites={"here": LocalSite()},
        pools={"gpu": Pool(site="here", count=1)},
        scheduler=SlurmScheduler(),
    )
    with pytest.raises(TypeError, match="not bare metal"):
        bare_metal_hosts(spec, "here")
