"""Which hosts are worked on together, and which wait for the next wave (pure)."""

from __future__ import annotations

from ...inventory.hosts import ClusterInventory

WAVE = 50
"""Most nodes of one pool that are worked on at once; a fork of Ansible holds about 60 MB."""


def waves(
    inventory: ClusterInventory, busy: frozenset[str], size: int = WAVE
) -> list[frozenset[str]]:
    """Return the hosts to work on together, wave by wave.

    Controllers and logins go first, with as many nodes of each pool as fit; then the next nodes of
    each pool. A slow node holds up its own wave only, and a change that breaks every node of a
    wave stops there.

    Args:
        inventory: all hosts.
        busy: those with something to do; the others are in no wave.
        size: most nodes of one pool in a wave.
    """
    found: list[set[str]] = []
    counted: dict[str, int] = {}
    for host in inventory.hosts:
        if host.name not in busy:
            continue
        number = 0
        if host.role == "compute":
            place = counted.get(host.pool, 0)
            counted[host.pool] = place + 1
            number = place // size
        while len(found) <= number:
            found.append(set())
        found[number].add(host.name)
    return [frozenset(wave) for wave in found if wave]
