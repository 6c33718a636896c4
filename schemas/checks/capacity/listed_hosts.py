"""Hosts of sites that come with a list of addresses: each is in the list, once."""

from __future__ import annotations

from collections.abc import Iterator

from ...derived.hostlist import fold
from ...derived.loading.host_lists import repeated
from ...diagnostics import PathTuple, Severity
from ...spec.sites.host_line import read_line
from ...spec.sites.ssh_fleet import SshFleetSite
from ..context import CheckContext, HostGroup
from ..registry import Finding, check
from .hosts import name_path


def _fleets(context: CheckContext) -> Iterator[tuple[str, SshFleetSite]]:
    """Yield the sites whose list could be read."""
    for name, site in context.sites.items():
        if isinstance(site, SshFleetSite) and (site.hosts or site.hosts_file is None):
            yield name, site


def _list_path(site: str, fleet: SshFleetSite) -> PathTuple:
    return ("sites", site, "hosts" if fleet.hosts_file is None else "hosts_file")


def _groups(context: CheckContext, site: str) -> list[HostGroup]:
    """Return the hosts that pools of a site name and say no address of."""
    return [
        group
        for group in context.host_groups
        if context.pools[group.pool].site == site
        and not (group.entry is not None and group.entry.address is not None)
    ]


@check("GC135", summary="A line of a site's list of hosts can't be read.")
def host_list_line_invalid(context: CheckContext) -> Iterator[Finding]:
    """A line is `ADDRESS [USER [PORT]] [name=NAME]`, as GPU clouds hand their hosts out.

    `ubuntu@192.0.2.11:2222` and `ssh ubuntu@192.0.2.11` are read too. Write an entry
    (`{address: ..., host_key: ...}`) for what a line can't say.
    """
    for name, fleet in _fleets(context):
        for index, item in enumerate(fleet.hosts):
            problem = read_line(item) if isinstance(item, str) else None
            if isinstance(problem, str):
                yield Finding(
                    summary=f'site "{name}": this line names no host: {problem}',
                    path=("sites", name, "hosts", index),
                    hint="write ADDRESS [USER [PORT]] [name=NAME]",
                )


@check("GC136", summary="A host is not in the list of its site.")
def host_not_listed(context: CheckContext) -> Iterator[Finding]:
    """The list of a site says where each host of its pools is.

    A host takes the entry of its name; else the first entry without a name that is left, in the
    order of the pools. So a list has at least as many entries as the pools name hosts.
    """
    for name, fleet in _fleets(context):
        groups = _groups(context, name)
        placed = fleet.placed(host for group in groups for host in group.names or ())
        for group in groups:
            missing = [host for host in group.names or () if host not in placed]
            if missing:
                yield Finding(
                    summary=f'pool "{group.pool}": the list of site "{name}" has no machine for '
                    f"{fold(missing)}: {len(fleet.listed):,} listed",
                    path=name_path(group),
                    hint=f"add {len(missing):,} to the list, or name fewer hosts",
                    relies_on=(name_path(group), _list_path(name, fleet)),
                )


@check("GC137", summary="A machine is listed twice for a site.")
def listed_host_duplicate(context: CheckContext) -> Iterator[Finding]:
    """An address, with its port, is one machine, and a name belongs to one.

    Two hosts with one address would be one machine that is set up as two.
    """
    for name, fleet in _fleets(context):
        for what, word in repeated(fleet.listed):
            yield Finding(
                summary=f'the list of site "{name}" has the {what} {word} twice',
                path=_list_path(name, fleet),
                at_key=True,
                hint="keep one of the two",
            )


@check("GC138", summary="Machines of a site's list are in no pool.")
def listed_host_unused(context: CheckContext) -> Iterator[Finding]:
    """A machine that is rented and in no pool costs money and runs nothing.

    Name it in a pool's `hosts`, or give it back and take it out of the list.
    """
    for name, fleet in _fleets(context):
        groups = _groups(context, name)
        if any(group.names is None for group in groups):
            continue
        placed = fleet.placed(host for group in groups for host in group.names or ())
        used = list(placed.values())
        spare = [entry for entry in fleet.listed if entry not in used]
        if spare and placed:
            shown = ", ".join(entry.name or entry.address for entry in spare[:3])
            yield Finding(
                summary=f'{len(spare):,} of the list of site "{name}" '
                f"{'is' if len(spare) == 1 else 'are'} in no pool: "
                f"{shown}{' ...' if len(spare) > 3 else ''}",  # noqa: PLR2004  # as many are shown
                path=_list_path(name, fleet),
                at_key=True,
                severity=Severity.WARNING,
                hint="name them in a pool's hosts, or take them out of the list",
                relies_on=(_list_path(name, fleet), ("pools", "*", "hosts")),
            )
