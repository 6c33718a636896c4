"""Hosts that exist: their names, addresses and host lists, each used once."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from ipaddress import ip_address
from itertools import chain

import msgspec

from ...derived.hostlist import HostlistError, expand, fold, host_stem, host_word
from ...diagnostics import PathTuple
from ...spec import Pool
from ...structure.fix.edits import Remove
from ..context import CheckContext, HostGroup
from ..network.cidrs import (
    Placed,
    ends,
    kubernetes_networks,
    overlap,
    parsed,
    readable,
    site_networks,
)
from ..references import repeated
from ..registry import Finding, check

_HOST_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?", re.ASCII)


def name_path(group: HostGroup) -> PathTuple:
    """Return where the names of a group are written."""
    return group.path if group.entry is None else (*group.path, "name")


@check("GC110", summary="A host name or host range can't be read.")
def host_range_invalid(context: CheckContext) -> Iterator[Finding]:
    """Host ranges are written as in Slurm: gpu[001-064], rack[1-2]n[01-16,20].

    Host names are letters, digits, hyphens and dots.
    """
    for group in context.host_groups:
        error = group.error or _bad_name(group)
        if error:
            yield Finding(
                summary=f'pool "{group.pool}": {error}',
                path=name_path(group),
                hint='write a Slurm host range, such as "gpu[001-064]"',
            )
        if group.address_error:
            yield Finding(
                summary=f'pool "{group.pool}": {group.address_error}',
                path=(*group.path, "address"),
                hint='write an address or a range of them, such as "10.0.1.[1-64]"',
            )


def _bad_name(group: HostGroup) -> str:
    """Return what is wrong with the first name that is no host name, or ""."""
    for name in group.names or ():
        if not _HOST_NAME.fullmatch(name):
            return f'"{name[:60]}" is not a host name'
    return ""


@check("GC111", summary="A host is named twice.")
def host_name_duplicate(context: CheckContext) -> Iterator[Finding]:
    """A host belongs to one pool, once.

    A host that is in two pools would be configured twice, by two rules.
    """
    named = ((group, group.names or ()) for group in context.host_groups)
    for group, first, names in repeated(named):
        many = "are" if len(names) > 1 else "is"
        line = context.line_of(name_path(first))
        where = f'pool "{first.pool}"' if first.pool != group.pool else "this pool"
        yield Finding(
            summary=f"{fold(names)} {many} named twice: first in {where}, line {line}",
            path=name_path(group),
            hint="keep one of the two",
            fix=Remove(group.path) if _is_identical(group, first) else None,
            relies_on=(name_path(group), name_path(first)),
        )


def _is_identical(group: HostGroup, first: HostGroup) -> bool:
    """Say whether an item of a list only repeats an earlier item of it."""
    same = group.path != first.path and group.path[:-1] == first.path[:-1]
    return same and (group.written, group.entry) == (first.written, first.entry)


@check("GC113", summary="One host key is given for several hosts.")
def host_key_duplicate(context: CheckContext) -> Iterator[Finding]:
    """`host_key` belongs to one host.

    Each host has a key of its own; one key on many hosts would let any of them pass for the
    others. Write an entry for each host, or name a known_hosts file in the site's ssh settings.
    """
    for group in context.host_groups:
        if group.entry and group.entry.host_key and group.names and len(group.names) > 1:
            yield Finding(
                summary=f"host_key is given for {len(group.names):,} hosts: {group.written}",
                path=(*group.path, "host_key"),
                hint="write one entry a host, or known_hosts: FILE in the site's ssh settings",
                relies_on=((*group.path, "host_key"), name_path(group)),
            )


_NUMBERED = re.compile(r"(.*[^0-9])([0-9]{3,9})", re.ASCII | re.DOTALL)


class _Made(msgspec.Struct, frozen=True):
    """Names that sites give, by rule: `inventory.hosts.pool_host_names` gives them."""

    numbered: dict[str, tuple[str, int, int]]
    """Pool, first and last number by the word before the number."""
    plain: dict[str, str]
    """Pools whose first machine is called as the pool is, by that name."""

    def pool_of(self, name: str) -> str | None:
        """Return the pool that has a machine of this name."""
        if name in self.plain:
            return self.plain[name]
        match = _NUMBERED.fullmatch(name)
        pool, first, last = self.numbered.get(match[1], ("", 1, 0)) if match else ("", 1, 0)
        number = int(match[2]) if match else 0
        same = match is not None and match[2] == f"{number:03d}"
        return pool if same and first <= number <= last else None


@check("GC119", summary="Two machines of the cluster get the same name.")
def machine_name_duplicate(context: CheckContext) -> Iterator[Finding]:
    """A name belongs to one machine of the cluster.

    Sites that make machines name them after the pool: pool gpu has gpu001, gpu002 and so on, and
    the first controller or login of a pool is called as the pool is, in lower case and with hyphens
    for underscores: pool GPU_Long has gpu-long001. Hosts of a bare-metal pool
    that have such a name, or a login pool called gpu001, would be two machines of one name.
    """
    yield from _alike(context)
    made = _made(context)
    if not made.numbered and not made.plain:
        return
    for group in context.host_groups:
        theirs: dict[str, list[str]] = {}
        for host in group.names or ():
            pool = made.pool_of(host)
            if pool is not None:
                theirs.setdefault(pool, []).append(host)
        for pool, names in theirs.items():
            yield _finding(context, pool, names, name_path(group), f'pool "{group.pool}"')
    for name in made.plain:
        match = _NUMBERED.fullmatch(name)
        pool, first, last = made.numbered.get(match[1], ("", 1, 0)) if match else ("", 1, 0)
        if match and match[2] == f"{int(match[2]):03d}" and first <= int(match[2]) <= last:
            yield _finding(context, pool, [name], ("pools", name), f'pool "{name}"')


def _alike(context: CheckContext) -> Iterator[Finding]:
    """Find pools whose names differ in case or underscores alone."""
    first: dict[str, str] = {}
    for name, pool in context.pools.items():
        if pool.hosts is None and context.makes_machines(pool):
            word = host_word(name)
            if first.setdefault(word, name) != name:
                path = ("pools", name)
                yield _finding(context, first[word], [word], path, f'pool "{name}"')


def _finding(
    context: CheckContext, pool: str, names: list[str], path: tuple[str | int, ...], who: str
) -> Finding:
    line = context.line_of(("pools", pool))
    return Finding(
        summary=f"{who}: {fold(names)} {'is' if len(names) == 1 else 'are'} also what "
        f'pool "{pool}" calls its machines, line {line}',
        path=path,
        at_key=len(path) == len(("pools", "NAME")),
        hint=f'call pool "{pool}" something else',
        relies_on=(
            path,
            ("pools", pool, "count"),
            ("pools", pool, "role"),
            ("pools", pool, "site"),
        ),
    )


def _made(context: CheckContext) -> _Made:
    """Return the names that sites give to the machines of all pools."""
    made = _Made(numbered={}, plain={})
    for name, pool in context.pools.items():
        size = context.size(name) if pool.hosts is None and context.makes_machines(pool) else None
        if not size:
            continue
        first = 1
        if pool.role != "compute":
            made.plain[host_word(name)] = name
            first = 2
        made.numbered[host_stem(name)] = (name, first, size + len(_skipped(pool)))
    return made


def _skipped(pool: Pool) -> tuple[str, ...]:
    try:
        return () if pool.skip is None else tuple(expand(pool.skip))
    except HostlistError:
        return ()


@check("GC145", summary="A pool can't skip these names.")
def skipped_name_invalid(context: CheckContext) -> Iterator[Finding]:
    """`skip` takes names away from a pool of compute nodes of a fixed count, one by one.

    Where a scale set or a cluster network has the nodes, or their place in a placement policy
    follows their number, the cloud's last ones go: write the count alone. Existing hosts are taken
    out of `hosts`.
    """
    for name, pool in context.pools.items():
        if pool.skip is None:
            continue
        path = ("pools", name, "skip")
        why, hint = _why_not_skipped(context, name, pool)
        if why:
            yield Finding(summary=f'pool "{name}": {why}', path=path, hint=hint, relies_on=(path,))


def _why_not_skipped(context: CheckContext, name: str, pool: Pool) -> tuple[str, str]:
    site = context.sites.get(pool.site)
    if pool.hosts is not None:
        return "skip is for machines that a site makes", "take the hosts out of hosts"
    if pool.role != "compute" or pool.is_elastic:
        return "skip is for compute nodes of a fixed count", "leave skip out"
    if site is not None and not site.frees_any_machine:
        return f"{site.provider} can't free one machine of a pool by its name", "leave skip out"
    try:
        skipped = expand(pool.skip or "")
    except HostlistError as error:
        return str(error), 'write a Slurm host range, such as "gpu[001-002]"'
    stem = host_stem(name)
    last = (context.size(name) or 0) + len(skipped)
    foreign = [one for one in skipped if one not in {f"{stem}{n:03d}" for n in range(1, last + 1)}]
    if foreign:
        return (
            f"{fold(foreign)} would be no name of it",
            f"its names are {stem}001 to {stem}{last:03d}",
        )
    return "", ""


@check("GC306", summary="Hosts have addresses that belong to another network of the cluster.")
def host_address_in_other_network(context: CheckContext) -> Iterator[Finding]:
    """A host's address lies in no network of another site, nor in that of pods or services.

    The other nodes would look for it there. Change the network that is made: hosts that exist keep
    their addresses.
    """
    if all(group.addresses is None for group in context.host_groups):
        return
    made = _apart(
        placed
        for placed in readable(chain(site_networks(context), kubernetes_networks(context)))
        if not context.exists(placed.written.site)
    )
    if not made:
        return
    starts = [ends(placed.network)[:2] for placed in made]
    for group in context.host_groups:
        site = context.sites.get(context.pools[group.pool].site)
        own = parsed(site.networks.get(("network", "cidr"), "") if site is not None else "")
        for placed, addresses in _inside(group, made, starts).items():
            written = placed.written
            if not isinstance(own, str) and overlap(own, placed.network):
                continue  # said of the two networks
            yield Finding(
                summary=f'pool "{group.pool}": {fold(addresses)} '
                f"{'is' if len(addresses) == 1 else 'are'} in {placed.network} of {written.who}",
                path=(*group.path, "address"),
                hint=f"choose another network for {written.who}",
                relies_on=((*group.path, "address"), written.path),
            )


def _apart(placed: Iterator[Placed]) -> list[Placed]:
    """Return networks in order, without those that lie in another one."""
    found: list[Placed] = []
    for one in sorted(placed, key=lambda p: (*ends(p.network)[:2], -ends(p.network)[2])):
        before = ends(found[-1].network) if found else (0, 0, -1)
        if before[0] != ends(one.network)[0] or ends(one.network)[2] > before[2]:
            found.append(one)
    return found


def _inside(
    group: HostGroup, made: list[Placed], starts: list[tuple[int, int]]
) -> dict[Placed, list[str]]:
    """Return the addresses of a group that lie in a network, by that network."""
    inside: dict[Placed, list[str]] = {}
    for text in group.addresses or ():
        try:
            address = ip_address(text)
        except ValueError:
            continue  # a DNS name
        index = bisect_right(starts, (address.version, int(address))) - 1
        if index >= 0 and address in made[index].network:
            inside.setdefault(made[index], []).append(text)
    return inside


@check("GC112", summary="An address range has another length than its name range.")
def address_range_length(context: CheckContext) -> Iterator[Finding]:
    """`address` names as many addresses as `name` names hosts.

    They are paired in order: the first name with the first address.
    """
    for group in context.host_groups:
        if group.names is None or group.addresses is None:
            continue
        if len(group.names) != len(group.addresses):
            yield Finding(
                summary=f"{len(group.names):,} names but {len(group.addresses):,} addresses "
                f"in {group.written}",
                path=(*group.path, "address"),
                hint="give as many addresses as names",
                relies_on=((*group.path, "address"), name_path(group)),
            )


@check("GC114", summary="Two hosts have the same address.")
def host_address_duplicate(context: CheckContext) -> Iterator[Finding]:
    """An address belongs to one host.

    Two names with one address would be one machine that is set up as two.
    """
    given = ((group, group.addresses or ()) for group in context.host_groups)
    for group, first, addresses in repeated(given):
        path = (*group.path, "address")
        line = context.line_of((*first.path, "address"))
        yield Finding(
            summary=f"{fold(addresses)} given to two hosts: first in line {line}",
            path=path,
            hint="give each host its own address",
            relies_on=(path, (*first.path, "address")),
        )
