"""Managed Lustre and the nodes that mount it: over EFA where both have it, in one zone."""

from __future__ import annotations

from collections.abc import Iterator

from ..diagnostics import PathTuple, Severity
from ..mend.fix import Remove
from ..spec import CloudSite
from .context import CheckContext
from .lustre import lustre, source_of
from .registry import Finding, check

_MANAGED = frozenset({"capacity", "existing"})
_POOLS = (("pools", "*", "machine"), ("pools", "*", "site"))


@check("GC417", summary="A Lustre file system is to be reached over EFA where there is none.")
def lustre_without_efa(context: CheckContext) -> Iterator[Finding]:
    """EFA is AWS's; both the file system and the nodes need it.

    A file system with `efa: true` costs no more, but comes in larger steps, so it is a mistake
    where no machine that mounts it has an EFA interface. It can be chosen only when the file system
    is made: one without EFA has to be made anew and its data copied.
    """
    for name, storage in lustre(context):
        if not storage.efa or source_of(storage) not in _MANAGED:
            continue
        path: PathTuple = ("storage", name, "efa")
        facts = context.site_facts(storage.site)
        if facts is not None and not any(offer.efa for offer in facts.lustre):
            yield Finding(
                summary=f'storage "{name}": {facts.name} has no EFA',
                path=path,
                hint="remove efa",
                relies_on=(path, ("storage", name, "site")),
                fix=Remove(path),
            )
        elif facts is not None and context.mounts.is_certain(name) and _no_efa(context, name):
            yield Finding(
                summary=f'storage "{name}" is to be reached over EFA, but no machine that mounts '
                "it has EFA",
                path=path,
                hint="remove efa, or mount it on machines with EFA, such as p5.48xlarge",
                relies_on=(("storage", name), *_POOLS),
            )


def _no_efa(context: CheckContext, name: str) -> bool:
    """Say whether the machines of all pools that mount it are known, and none has EFA."""
    machines = [
        context.machine(context.pools[pool])
        for pool in context.mounts.mounted_by(name)
        if context.pools[pool].role == "compute"
    ]
    known = [machine.nics for machine in machines if machine is not None and machine.nics]
    none = not any(nic.kind == "efa" for nics in known for nic in nics)
    return bool(machines) and len(known) == len(machines) and none


@check("GC418", summary="A Lustre file system stands in another zone than its nodes.")
def lustre_in_another_zone(context: CheckContext) -> Iterator[Finding]:
    """Managed Lustre stands in one zone; nodes belong in the same one.

    EFA does not leave its zone, so there it is an error. Otherwise traffic between zones is slower
    and paid for.
    """
    for name, storage in lustre(context):
        site = context.sites.get(storage.site or "")
        if source_of(storage) != "capacity" or not isinstance(site, CloudSite):
            continue
        zone = storage.zone or site.zone
        if zone is None:
            continue
        for pool in context.mounts.mounted_by(name):
            what = context.pools[pool]
            zones = what.zones or ([site.zone] if site.zone is not None else [])
            if what.site != storage.site or not zones or zone in zones:
                continue
            key = "zone" if storage.zone is not None else "site"
            yield Finding(
                summary=f'storage "{name}" stands in zone {zone}, but pool "{pool}" in '
                f"{', '.join(zones)}",
                path=("storage", name, key),
                severity=Severity.ERROR if storage.efa else Severity.WARNING,
                hint=f"make it in zone {zones[0]}" + (", EFA stays in one" if storage.efa else ""),
                relies_on=(
                    ("storage", name),
                    ("pools", pool, "zones"),
                    ("pools", pool, "site"),
                    ("sites", storage.site or ""),
                ),
            )
            break
