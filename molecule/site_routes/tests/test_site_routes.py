"""Hosts behind a gateway have its routes, the gateway has none; what doesn't answer is named."""

from __future__ import annotations

import os

import pytest
import testinfra
from conftest import Play
from testinfra.host import Host

INVENTORY = os.environ["MOLECULE_INVENTORY_FILE"]


@pytest.fixture(scope="session")
def behind() -> Host:
    """Return the host behind the gateway."""
    return testinfra.get_host(f"ansible://node02?ansible_inventory={INVENTORY}")


@pytest.fixture(scope="session")
def gateway() -> Host:
    """Return the gateway."""
    return testinfra.get_host(f"ansible://node01?ansible_inventory={INVENTORY}")


def test_the_kernel_sends_the_other_sites_to_the_gateway(behind: Host, gateway: Host) -> None:
    assert "via 10.20.0.1" in behind.check_output("ip route get 10.50.7.7")
    assert behind.service("gcluster-routes").is_enabled
    assert not gateway.file("/etc/systemd/system/gcluster-routes.service").exists


def test_a_network_that_is_no_longer_joined_loses_its_route(behind: Host, converge: Play) -> None:
    run = converge(networks=["10.40.0.0/16"])
    assert run.returncode == 0, run.printed
    assert behind.check_output("ip route show exact 10.50.0.0/16") == ""
    assert converge().returncode == 0


def test_a_link_that_carries_nothing_is_reported_before_anything_is_set_up(converge: Play) -> None:
    assert converge(phases=["preflight"]).returncode == 0
    run = converge(phases=["preflight"], given="192.0.2.9")
    assert run.returncode != 0
    assert (
        "far of site west doesn't answer at 192.0.2.9, port 22: the link by vpn carries nothing"
        in run.printed
    )
