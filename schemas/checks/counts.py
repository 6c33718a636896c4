"""How many machines a pool has: a count where the site makes them, hosts where they exist."""

from __future__ import annotations

from collections.abc import Iterator

from ..hostlist import MAX_HOSTS
from ..mend.fix import Remove
from ..spec import SimulatedSite
from .context import CheckContext
from .registry import Finding, check


@check("GC105", summary="A compute pool of a site that makes machines has no count.")
def needs_count(context: CheckContext) -> Iterator[Finding]:
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
def hosts_where_made(context: CheckContext) -> Iterator[Finding]:
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
def needs_hosts(context: CheckContext) -> Iterator[Finding]:
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
