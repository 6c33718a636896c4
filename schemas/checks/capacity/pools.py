"""How many machines a pool has, and the options that only a cloud's pools have."""

from __future__ import annotations

from collections.abc import Iterator

from ...derived.hostlist import MAX_HOSTS
from ...diagnostics import Severity
from ...spec import Count, Pool, SimulatedSite
from ...structure.fix.edits import Remove, Replace
from ..context import CheckContext
from ..registry import Finding, check


@check("GC105", summary="A compute pool of a site that makes machines has no count.")
def count_missing(context: CheckContext) -> Iterator[Finding]:
    """Local and simulated compute pools need `count`.

    Such sites make their machines, so the spec must say how many. A controller or login pool
    without a count is one machine.
    """
    for name, pool in context.pools.items():
        if pool.role != "compute" or pool.count is not None or pool.hosts is not None:
            continue
        if context.makes_machines(pool):
            yield Finding(
                summary=f'pool "{name}" does not say how many machines site "{pool.site}" makes',
                path=("pools", name),
                at_key=True,
                hint="add count: 4",
                relies_on=(("pools", name, "count"), ("pools", name, "role")),
            )


@check("GC106", summary="A pool of a site that makes machines names hosts.")
def hosts_on_provisioned_site(context: CheckContext) -> Iterator[Finding]:
    """`hosts` is for machines that exist already (bare metal).

    Local and simulated sites make their machines and name them after the pool: give `count`.
    """
    for name, pool in context.pools.items():
        if pool.hosts is not None and context.makes_machines(pool):
            yield Finding(
                summary=f'pool "{name}" names hosts, but site "{pool.site}" makes its machines',
                path=("pools", name, "hosts"),
                at_key=True,
                hint="write count: N instead of hosts",
                relies_on=(("pools", name, "hosts"), ("pools", name, "site")),
            )


@check("GC107", summary="A bare-metal pool names no hosts.")
def hosts_missing(context: CheckContext) -> Iterator[Finding]:
    """A bare-metal pool needs `hosts`.

    Nothing is made on bare metal: the spec names the hosts that exist, as a range or a list.
    """
    for name, pool in context.pools.items():
        if not pool.hosts and pool.count is None and context.makes_machines(pool) is False:
            yield Finding(
                summary=f'bare-metal pool "{name}" names no hosts',
                path=("pools", name),
                at_key=True,
                hint=f'add hosts: "{name}[01-04]"',
                relies_on=(("pools", name, "hosts"),),
            )


@check("GC108", summary="A bare-metal pool gives a count.")
def count_on_bare_metal(context: CheckContext) -> Iterator[Finding]:
    """`count` is for sites that make machines.

    On bare metal the number of machines is the number of `hosts`.
    """
    for name, pool in context.pools.items():
        if pool.count is not None and context.makes_machines(pool) is False:
            path = ("pools", name, "count")
            says_the_same = pool.count is not None and pool.count == context.size(name)
            yield Finding(
                summary=f'pool "{name}" gives a count, but bare metal has the hosts it has',
                path=path,
                at_key=True,
                fix=Remove(path) if says_the_same else None,
                hint="remove count" if pool.hosts else f'write hosts: "{name}[01-04]" instead',
            )


@check("GC109", summary="A simulated site has more than 100,000 nodes.")
def too_many_simulated(context: CheckContext) -> Iterator[Finding]:
    """One simulated site holds 100,000 nodes at most.

    That is above every cluster that exists; more would only fill the memory.
    """
    for site_name, site in context.sites.items():
        if not isinstance(site, SimulatedSite):
            continue
        total = 0
        for name in context.pools_of_site.get(site_name, ()):
            count = context.pools[name].most or 0
            total += count
            if total > MAX_HOSTS >= total - count:
                yield Finding(
                    summary=f'pool "{name}" takes simulated site "{site_name}" to {total:,} nodes',
                    path=("pools", name, "count"),
                    hint=f"a simulated site has at most {MAX_HOSTS:,}",
                )


@check("GC116", summary="A pool's least count is above its largest.")
def count_reversed(context: CheckContext) -> Iterator[Finding]:
    """`count: {min, max}` goes from the machines that are always there to the most at once.

    A pool that never changes takes a plain number: `count: 4`.
    """
    for name, pool in context.pools.items():
        count = pool.count
        if isinstance(count, Count) and count.min > count.max:
            path = ("pools", name, "count")
            swapped = f"{{min: {count.max}, max: {count.min}}}"
            yield Finding(
                summary=f'pool "{name}": at least {count.min:,} machines, '
                f"but at most {count.max:,}",
                path=(*path, "min"),
                hint=f"write count: {swapped}",
                relies_on=((*path, "min"), (*path, "max")),
                fix=Replace(path, swapped),
            )


@check("GC115", summary="A quorum is larger than its pool.")
def quorum_above_size(context: CheckContext) -> Iterator[Finding]:
    """`quorum` is at most the number of machines in the pool.

    The cluster goes live once that many are up; a larger number can never be reached.
    """
    for name, pool in context.pools.items():
        size = context.size(name)
        if pool.quorum is None or not size:
            continue
        if pool.quorum > size:
            yield Finding(
                summary=f'pool "{name}": quorum {pool.quorum:,} can\'t be met by {size:,} machines',
                path=("pools", name, "quorum"),
                hint=f"at most quorum: {size}",
                relies_on=tuple(("pools", name, key) for key in ("quorum", "hosts", "count")),
            )


_GIB = 2**30
_TIGHT_GIB = 100
"""Boot disk with GPU software: a CUDA toolkit takes 9 GiB, driver, fabric and libraries 6, the
system 5, one container image of NVIDIA's for training 20 to 25, twice while it is unpacked; and
logs."""


@check("GC447", summary="A boot disk is smaller or larger than the cloud makes, or tight for GPUs.")
def boot_disk_size(context: CheckContext) -> Iterator[Finding]:
    """`disk` is between the size of the vendors' images and the largest that the cloud has.

    Below 100 GiB the software of GPUs and a container image fill it: that is a warning. Without
    `disk` gcluster takes a size that holds them (200 GiB; 256 on Azure, which bills in steps).
    """
    for name, pool in context.pools.items():
        facts = context.facts(pool)
        if pool.disk is None or facts is None or not facts.boot_disk_gib:
            continue
        least, most = min(facts.boot_disk_gib), max(facts.boot_disk_gib)
        size, machine = pool.disk.value / _GIB, context.machine(pool)
        path = ("pools", name, "disk")
        relies_on = (path, ("pools", name, "site"))
        if not least <= size <= most:
            yield Finding(
                summary=f'pool "{name}": {facts.name} has boot disks of {least:g} to {most:g} GiB, '
                f"not {pool.disk}",
                path=path,
                hint=f"write disk: {min(most, 200):g} GiB",
                relies_on=relies_on,
            )
        elif size < _TIGHT_GIB and machine is not None and machine.gpu is not None:
            yield Finding(
                summary=f'pool "{name}": {pool.disk} is little for drivers, CUDA and containers',
                path=path,
                severity=Severity.WARNING,
                hint="write disk: 200 GiB, or leave it out",
                relies_on=(*relies_on, ("pools", name, "machine")),
            )


_KEYS = ("market", "mixed", "zones", "placement", "image", "disk", "public_address", "tags")


@check("GC127", summary="A pool of a site that is no cloud has a setting of clouds.")
def cloud_key_on_other_site(context: CheckContext) -> Iterator[Finding]:
    """How machines are bought, where a cloud puts them and what they boot from is said of clouds.

    On bare metal, local and simulated sites these keys would do nothing, so they are mistakes:
    `market`, `mixed`, `zones`, `placement`, `image`, `disk`, `public_address` and `tags`.
    """
    for name, pool in context.pools.items():
        site = context.sites.get(pool.site)
        if site is None or site.is_cloud:
            continue
        for key in _given(pool):
            path = ("pools", name, key)
            yield Finding(
                summary=f'pool "{name}": {key} is for clouds, site "{pool.site}" is '
                f"{site.provider}",
                path=path,
                at_key=True,
                hint=f"remove {key}",
                fix=Remove(path),
                relies_on=(path, ("pools", name, "site")),
            )


def _given(pool: Pool) -> list[str]:
    """Return the keys of clouds that a pool gives."""
    return [key for key in _KEYS if getattr(pool, key)]
