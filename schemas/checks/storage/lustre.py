"""Lustre: which kind a site can make, and which nodes can reach it."""

from __future__ import annotations

from collections.abc import Iterator

from ...diagnostics import PathTuple, Severity
from ...spec import CloudSite, FileService, LustreStorage
from ...structure.fix.edits import Insert, Remove
from ..context import CheckContext
from ..registry import Finding, check

_SOURCES = ("mgs", "existing", "servers", "capacity")
_OF_MADE = {
    "throughput": ("mgs", "existing", "servers"),
    "deployment": ("mgs", "existing", "servers"),
    "efa": ("mgs", "servers"),
    "zone": ("mgs", "existing", "servers"),
    "kms_key": ("mgs", "existing", "servers"),
    "import": ("mgs", "servers"),
    "export": ("mgs", "servers"),
}
"""Keys that say how a cloud makes a file system, and the sources that they mean nothing with."""


def lustre(context: CheckContext) -> Iterator[tuple[str, LustreStorage]]:
    """Yield the Lustre file systems by name."""
    for name, storage in context.storage.items():
        if isinstance(storage, LustreStorage):
            yield name, storage


def source_of(storage: LustreStorage) -> str | None:
    """Return the one key that says where it comes from; None when there is none or several."""
    given = _given(storage)
    return given[0] if len(given) == 1 else None


def _given(storage: LustreStorage) -> list[str]:
    return [key for key in _SOURCES if getattr(storage, key) is not None]


@check(
    "GC411",
    summary="The source of a Lustre file system is not specified, or specified several times.",
)
def lustre_source_ambiguous(context: CheckContext) -> Iterator[Finding]:
    """Give one of `mgs`, `existing`, `servers` and `capacity`.

    `mgs` (with `fsname`) is a file system that runs already, `existing` the id of a cloud's managed
    one, `servers` hosts of the spec to set it up on, and `capacity` a managed one to make.
    """
    for name, storage in lustre(context):
        given = _given(storage)
        if len(given) == 1:
            continue
        path: PathTuple = ("storage", name)
        keys = tuple((*path, key) for key in _SOURCES)
        if not given:
            yield Finding(
                summary=f'storage "{name}" does not say where the file system comes from',
                path=path,
                at_key=True,
                hint="give mgs and fsname (it runs), existing (its id), servers (hosts of the "
                "spec), or capacity (to make it)",
                relies_on=keys,
            )
        else:
            yield Finding(
                summary=f'storage "{name}" says in {len(given)} ways where the file system comes '
                f"from: {', '.join(given)}",
                path=(*path, given[1]),
                at_key=True,
                hint=f"keep one of {' and '.join(given)}",
                relies_on=keys,
            )


@check("GC412", summary="A Lustre file system is reached by its MGS, but has no name.")
def lustre_without_name(context: CheckContext) -> Iterator[Finding]:
    """A client mounts MGS:/fsname, so `mgs` needs `fsname` as well."""
    for name, storage in lustre(context):
        if storage.mgs is not None and storage.fsname is None:
            path = ("storage", name, "mgs")
            yield Finding(
                summary=f'storage "{name}": the management server alone does not say which file '
                "system",
                path=path,
                hint="add fsname: the name it was made with (lctl get_param mgs.MGS.filesystems)",
                relies_on=(path, ("storage", name, "fsname")),
            )


@check("GC413", summary="A key sets how to create a Lustre file system that is not created.")
def lustre_key_of_created(context: CheckContext) -> Iterator[Finding]:
    """`throughput`, `deployment`, `zone` and the like belong to a file system that a cloud makes.

    With `mgs`, `existing` or `servers` they would change nothing. `efa` may be given with
    `existing`: whether a file system can be reached over EFA was decided when it was made, and the
    clients have to know.
    """
    for name, storage in lustre(context):
        source = source_of(storage)
        for key, without in _OF_MADE.items():
            if source in without and _is_set(storage, key):
                path = ("storage", name, key)
                yield Finding(
                    summary=f'storage "{name}" is not made (it has {source}), '
                    f"so {key} means nothing",
                    path=path,
                    at_key=True,
                    hint=f"remove {key}",
                    relies_on=(path, ("storage", name, source or "")),
                    fix=Remove(path),
                )


def _is_set(storage: LustreStorage, key: str) -> bool:
    if key == "deployment":
        return storage.deployment != "auto"
    attribute = {"import": "import_from", "export": "export_to"}.get(key, key)
    return bool(getattr(storage, attribute))


@check("GC457", summary="Lustre's interfaces or routers where they can't be set.")
def lustre_network_of_others(context: CheckContext) -> Iterator[Finding]:
    """`interfaces` and `routers` are for a file system that exists and is reached by its `mgs`.

    A cloud's file system is reached by its cloud's network, and hosts of the spec that serve one
    have no route back. A router is in the nodes' network, so its NID is of another one than the
    servers'.
    """
    for name, storage in lustre(context):
        for key in ("interfaces", "routers"):
            path = ("storage", name, key)
            if getattr(storage, key) and storage.mgs is None:
                yield Finding(
                    summary=f'storage "{name}": {key} can be given only with mgs',
                    path=path,
                    at_key=True,
                    hint=f"remove {key}",
                    relies_on=(path, ("storage", name, "mgs")),
                    fix=Remove(path),
                )
        of_servers = (storage.mgs or "").rpartition("@")[2]
        near = [nid for nid in storage.routers if nid.rpartition("@")[2] == of_servers]
        if near and storage.mgs is not None:
            yield Finding(
                summary=f'storage "{name}": {near[0]} is in the servers\' network, no way to it',
                path=("storage", name, "routers"),
                hint="name routers by their NIDs in the nodes' network",
                relies_on=(("storage", name, "routers"), ("storage", name, "mgs")),
            )


@check("GC414", summary="A managed Lustre file system has no site, or one that makes none.")
def lustre_without_cloud(context: CheckContext) -> Iterator[Finding]:
    """A cloud makes file systems for its own sites: `capacity` and `existing` need a `site` there.

    On bare metal and on local sites no provider can create one. Reach one that runs with `mgs` and
    `fsname`, or set it up on hosts of the spec with `servers`.
    """
    clouds = [name for name, site in context.sites.items() if site.is_cloud]
    for name, storage in lustre(context):
        source = source_of(storage)
        if source not in {"capacity", "existing"}:
            continue
        path: PathTuple = ("storage", name, "site")
        site = context.sites.get(storage.site or "")
        needs = (("storage", name, source), path, ("sites", "*", "provider"))
        if storage.site is None:
            only = clouds[0] if len(clouds) == 1 and len(context.sites) == 1 else None
            yield Finding(
                summary=f'storage "{name}" does not say which site has the managed file system',
                path=path[:-1],
                at_key=True,
                hint=f"add site: {clouds[0]}"
                if clouds
                else "no site of the spec is a cloud: give mgs and fsname, or servers",
                relies_on=needs,
                fix=Insert(path[:-1], "site", only) if only else None,
            )
        elif site is not None and not site.is_cloud and site.runs_jobs:
            yield Finding(
                summary=f'storage "{name}": site "{storage.site}" ({site.provider}) makes no file '
                "systems",
                path=path,
                hint="give mgs and fsname, or servers, or the site of a cloud",
                relies_on=needs,
            )


@check("GC444", summary="A name is given to a Lustre file system that its cloud names.")
def lustre_name_not_chosen(context: CheckContext) -> Iterator[Finding]:
    """AWS and Azure name the file systems that they make, and all clouds those that exist.

    gcluster queries the cloud for the name that is mounted; another one in the spec would be left
    out. Google Cloud and OCI take `fsname` for what they make.
    """
    for name, storage in lustre(context):
        site = context.sites.get(storage.site or "")
        source = source_of(storage)
        if storage.fsname is None or source not in _MANAGED or not isinstance(site, CloudSite):
            continue
        if source == "existing" or str(site.provider) in _NAMING:
            path: PathTuple = ("storage", name, "fsname")
            yield Finding(
                summary=f'storage "{name}": {site.provider} says the name of this file system',
                path=path,
                at_key=True,
                hint="remove fsname",
                relies_on=(path, ("storage", name, source), ("storage", name, "site")),
                fix=Remove(path),
            )


_NAMING = ("aws", "azure")
"""Clouds that name what they make (FSx' MountName; Azure's is always lustrefs)."""


@check("GC445", summary="Nodes of another site would mount a file system that a cloud runs.")
def managed_storage_elsewhere(context: CheckContext) -> Iterator[Finding]:
    """A file system that a cloud runs is opened to the nodes of its own site, and to no others.

    Lustre's servers call clients back, names are known in their own network alone, and every lookup
    would wait for the link between the sites. Keep a copy at the other site (`copy_of`), or reach
    the file system over your own routes: Lustre by `mgs` and `fsname`, others by `type: nfs` with
    the address of their server.
    """
    for name, storage in context.storage.items():
        managed = isinstance(storage, LustreStorage) and source_of(storage) in _MANAGED
        if not (managed or isinstance(storage, FileService)) or storage.site not in context.sites:
            continue
        for index, word in enumerate(storage.pools):
            pool = context.pools.get(word)
            if pool is not None and pool.site != storage.site and pool.site in context.sites:
                path = ("storage", name, "pools", index)
                yield Finding(
                    summary=f'storage "{name}" is run by site "{storage.site}", but pool "{word}" '
                    f'is at "{pool.site}"',
                    path=path,
                    hint=f'name pools of site "{storage.site}"; for others add a storage there '
                    f"with copy_of: {name}",
                    relies_on=(path, ("storage", name), ("pools", word, "site")),
                )


_MANAGED = frozenset({"capacity", "existing"})
_POOLS = (("pools", "*", "machine"), ("pools", "*", "site"))


@check("GC417", summary="A Lustre file system is to be reached over EFA where there is none.")
def lustre_without_efa(context: CheckContext) -> Iterator[Finding]:
    """EFA is AWS's; both the file system and the nodes need it.

    A file system with `efa: true` costs no more, but comes in larger steps, so it is a mistake
    where no machine that mounts it has an EFA interface. It can be chosen only when the file system
    is made: one without EFA has to be recreated and its data copied.
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
        if context.pools[pool].is_compute
    ]
    known = [machine.nics for machine in machines if machine is not None and machine.nics]
    none = not any(nic.kind == "efa" for nics in known for nic in nics)
    return bool(machines) and len(known) == len(machines) and none


@check("GC418", summary="A Lustre file system is in another zone than its nodes.")
def lustre_zone_mismatch(context: CheckContext) -> Iterator[Finding]:
    """Managed Lustre is in one zone; nodes belong in the same one.

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
                summary=f'storage "{name}" is in zone {zone}, but pool "{pool}" in '
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
