"""Waves: controllers first, pools in step, each host exactly once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gcluster.inventory.hosts import ClusterInventory, Host, SshTarget
from gcluster.lifecycle.nodes.converge.playbook import waves


def _inventory(**pools: int) -> ClusterInventory:
    hosts = [_host("head", "head", "controller"), _host("login", "login", "login")]
    for pool, count in pools.items():
        hosts += [_host(f"{pool}{number}", pool, "compute") for number in range(count)]
    return ClusterInventory(cluster="c", hosts=tuple(hosts))


def _host(name: str, pool: str, role: str) -> Host:
    return Host(name=name, site="s", pool=pool, role=role, machine=None, ssh=SshTarget(user="root"))


def _all(inventory: ClusterInventory) -> frozenset[str]:
    return frozenset(host.name for host in inventory.hosts)


def test_controllers_and_logins_are_in_the_first_wave() -> None:
    inventory = _inventory(a=5)
    assert {"head", "login", "a0", "a1"} == waves(inventory, _all(inventory), size=2)[0]


def test_every_pool_has_its_share_of_each_wave() -> None:
    inventory = _inventory(a=3, b=2)
    assert waves(inventory, _all(inventory), size=2)[1] == {"a2"}


def test_hosts_with_nothing_to_do_take_no_place_in_a_wave() -> None:
    assert waves(_inventory(a=9), frozenset({"a7", "a8"}), size=2) == [{"a7", "a8"}]


@given(a=st.integers(0, 40), b=st.integers(0, 40), size=st.integers(1, 9), data=st.data())
def test_every_busy_host_is_in_exactly_one_wave(
    a: int, b: int, size: int, data: st.DataObject
) -> None:
    inventory = _inventory(a=a, b=b)
    busy = frozenset(data.draw(st.sets(st.sampled_from(sorted(_all(inventory))))))
    found = waves(inventory, busy, size=size)
    assert sorted(host for wave in found for host in wave) == sorted(busy)
    assert all(found)
