"""Controllers and the services next to them: accounting, REST API, directories."""

from __future__ import annotations

from collections.abc import Iterator

from ...diagnostics import PathTuple, Severity
from ...spec import ObjectStorage, ScratchStorage
from ...structure.fix.edits import Remove
from ..context import CheckContext
from ..registry import Finding, check


def controller_pools(context: CheckContext) -> list[str]:
    """Return the pools whose hosts are controllers."""
    return [name for name, pool in context.pools.items() if pool.role == "controller"]


def controller_hosts(context: CheckContext) -> int | None:
    """Return how many hosts are controllers; None when that isn't known."""
    sizes = [context.size(name) for name in controller_pools(context)]
    return None if None in sizes else sum(size or 0 for size in sizes)


SLURM_PORTS = range(6817, 6821)
"""slurmctld, slurmd, slurmdbd and slurmrestd."""
_HOSTS = tuple(("pools", "*", key) for key in ("role", "hosts", "count"))


@check("GC529", summary="The state that controllers share lies where they can't share it.")
def controller_state_not_shared(context: CheckContext) -> Iterator[Finding]:
    """Slurm's backup controller takes over with the state that the first one wrote.

    So `state_save` is a file system that every controller mounts: NFS, Lustre or GPFS. Local disks
    and buckets are none. Served by a controller itself it goes away with that controller.
    """
    name = context.slurm.state_save if context.slurm is not None else None
    storage = context.storage.get(name or "")
    if name is None or storage is None:
        return
    path: PathTuple = ("scheduler", "state_save")
    needs = (path, ("storage", name), ("pools", "*", "role"), ("pools", "*", "site"))
    if isinstance(storage, ScratchStorage | ObjectStorage):
        kind = "each node's own disks" if isinstance(storage, ScratchStorage) else "a bucket"
        yield Finding(
            summary=f'controllers can\'t share their state on "{name}": it is {kind}',
            path=path,
            hint="name an NFS, Lustre or GPFS storage",
            relies_on=needs,
        )
        return
    controllers = controller_pools(context)
    mounting = set(context.mounts.mounted_by(name))
    for pool in controllers:
        if pool not in mounting and context.mounts.is_certain(name):
            yield Finding(
                summary=f'controller pool "{pool}" does not mount "{name}", where the state is',
                path=path,
                hint=f"add {pool} to the pools of {name}",
                relies_on=needs,
            )
    server = context.mounts.server(name)
    if server in controllers and (controller_hosts(context) or 0) > 1:
        yield Finding(
            summary=f'controller pool "{server}" serves "{name}" itself: the shared state goes '
            "away with it",
            path=path,
            severity=Severity.WARNING,
            hint="share the state on a server that is no controller",
            relies_on=(*needs, *_HOSTS),
        )


@check("GC530", summary="The number of Kubernetes control planes is even.")
def control_plane_count_even(context: CheckContext) -> Iterator[Finding]:
    """More than half of etcd's members have to work, so their number is odd.

    Four bear the loss of one, like three, and two bear none: the even one only adds a part that
    can fail.
    """
    kubernetes = context.kubernetes
    hosts = controller_hosts(context)
    if kubernetes is None or kubernetes.control_plane != "self" or not hosts or hosts % 2:
        return
    pool = controller_pools(context)[-1]
    key = "count" if context.pools[pool].hosts is None else "hosts"
    yield Finding(
        summary=f"{hosts:,} control planes bear the loss of {hosts // 2 - 1:,}, "
        f"as {hosts - 1:,} would",
        path=("pools", pool, key),
        hint=f"make it {hosts - 1} or {hosts + 1}",
        relies_on=(*_HOSTS, ("scheduler", "control_plane")),
    )


@check("GC531", summary="Several control planes have no address in common.")
def control_plane_endpoint_missing(context: CheckContext) -> Iterator[Finding]:
    """Nodes use one address, and it moves to a control plane that works.

    Clouds have load balancers for that. On bare metal name a free address of their network:
    `virtual_address: {address: 10.20.0.10}`.
    """
    kubernetes = context.kubernetes
    hosts = controller_hosts(context)
    if kubernetes is None or kubernetes.control_plane != "self" or not hosts or hosts == 1:
        return
    sites = {context.pools[pool].site for pool in controller_pools(context)}
    known = [context.sites[site] for site in sites if site in context.sites]
    if kubernetes.virtual_address is None and not all(s.makes_machines for s in known):
        yield Finding(
            summary=f"{hosts:,} control planes on bare metal have no address in common",
            path=("scheduler",),
            at_key=True,
            hint="add virtual_address: {address: a free one of their network}",
            relies_on=(*_HOSTS, ("scheduler", "virtual_address"), ("scheduler", "control_plane")),
        )


_ACCOUNTING: PathTuple = ("scheduler", "accounting")


@check("GC539", summary="The ports for srun are none, or too few.")
def srun_ports_unusable(context: CheckContext) -> Iterator[Finding]:
    """`srun_ports` is a range from a lower to a higher port, outside of Slurm's own.

    An srun listens on three ports and two more for every 48 nodes of its job (slurm.conf(5)), and
    sruns of one machine share the range: it has room for one over all nodes at least.
    """
    written = context.slurm.srun_ports if context.slurm is not None else None
    if written is None:
        return
    path: PathTuple = ("scheduler", "srun_ports")
    first, last = (int(port) for port in written.split("-"))
    compute = [name for name, pool in context.pools.items() if pool.is_compute]
    nodes = sum(context.size(name) or 0 for name in compute)
    needs = 3 + 2 * -(-nodes // 48)
    why = None
    if not 1024 <= first < last <= 65_535:  # noqa: PLR2004  # ports that users may listen on
        why = "is no range of ports between 1024 and 65535"
    elif first <= SLURM_PORTS[-1] and last >= SLURM_PORTS[0]:
        why = f"has ports of Slurm's own in it ({SLURM_PORTS[0]} to {SLURM_PORTS[-1]})"
    elif last - first + 1 < needs:
        why = f"has {last - first + 1:,} ports, and one job on {nodes:,} nodes needs {needs:,}"
    if why is not None:
        yield Finding(
            summary=f"srun_ports {written} {why}",
            path=path,
            hint="write a range with room for many jobs, such as 60001-63000",
            relies_on=(path, *(("pools", "*", key) for key in ("role", "hosts", "count"))),
        )


@check("GC540", summary="X11 forwarding is requested where Slurm doesn't support it.")
def x11_on_containers(context: CheckContext) -> Iterator[Finding]:
    """Local and simulated nodes have no cgroups, and Slurm forwards no window without them.

    `PrologFlags=X11` doesn't go with `proctrack/linuxproc` (slurm.conf(5)).
    """
    if context.slurm is None or not context.slurm.x11:
        return
    named = [pool.machine for pool in context.pools.values() if pool.machine is not None]
    known = [context.catalog.machines.get(name) for name in named]
    only_simulated = bool(known) and all(one is not None and one.simulated for one in known)
    if only_simulated or any(site.is_made_here for site in context.sites.values()):
        path: PathTuple = ("scheduler", "x11")
        yield Finding(
            summary="jobs on local and simulated nodes have no windows: x11 is for machines",
            path=path,
            hint="remove it",
            fix=Remove(path),
            relies_on=(path, ("pools", "*", "machine"), ("sites", "*", "provider")),
        )


@check("GC565", summary="How long nodes may be idle, where none is given back.")
def suspend_after_without_elastic_pools(context: CheckContext) -> Iterator[Finding]:
    """Idle nodes of elastic pools are given back after `suspend_after`.

    Under EKS, GKE and AKS the cloud's autoscaler decides that by itself. The nodes of a pool with a
    fixed `count`, or of hosts that exist, stay. Write `count: {min: 0, max: 16}` for a pool that
    grows with the queue.
    """
    scheduler, pools = context.slurm or context.kubernetes, context.pools.values()
    if scheduler is None or scheduler.suspend_after is None:
        return
    kubernetes = context.kubernetes
    clouds = kubernetes is not None and kubernetes.control_plane != "self"
    if not clouds and any(pool.is_elastic for pool in pools):
        return
    path: PathTuple = ("scheduler", "suspend_after")
    yield Finding(
        summary="suspend_after has no effect: "
        + (
            "the cloud's autoscaler decides when"
            if clouds
            else "no pool has nodes that come and go"
        ),
        path=path,
        severity=Severity.WARNING,
        hint="remove it" if clouds else "remove it, or write count: {min: 0, max: 16} in a pool",
        fix=Remove(path),
        relies_on=(path, ("pools", "*", "count"), ("scheduler", "control_plane")),
    )


@check("GC551", summary="A database is named without its password, or a password without it.")
def accounting_database_incomplete(context: CheckContext) -> Iterator[Finding]:
    """A database that exists needs the password of slurmdbd; one that is set up gets its own."""
    accounting = context.slurm.accounting if context.slurm is not None else None
    if accounting is None or (accounting.database is None) == (accounting.password is None):
        return
    given, missing = "database", "password"
    if accounting.database is None:
        given, missing = missing, given
    path: PathTuple = (*_ACCOUNTING, given)
    yield Finding(
        summary=f"accounting names a {given}, but no {missing}",
        path=path,
        hint="add password: env:SLURMDB_PASSWORD (a reference, never the password)"
        if missing == "password"
        else "add database: host:port, or remove password",
        relies_on=(path, (*_ACCOUNTING, missing)),
    )


@check("GC552", summary="A service runs on nodes that run jobs.")
def service_on_workers(context: CheckContext) -> Iterator[Finding]:
    """Accounting and metrics take memory from jobs, and jobs take them down.

    Let them run with the controller, or on a login pool. A pool that may have no node can't run
    them at all.
    """
    named: list[tuple[str, str | None, PathTuple]] = []
    if context.slurm is not None and context.slurm.accounting is not None:
        named.append(("accounting", context.slurm.accounting.pool, (*_ACCOUNTING, "pool")))
    if context.monitoring is not None:
        named.append(("monitoring", context.monitoring.pool, ("monitoring", "pool")))
    for who, word, path in named:
        pool = context.pools.get(word or "")
        if word is None or pool is None or pool.role != "compute":
            continue
        empty = pool.least == 0
        yield Finding(
            summary=f'{who} is to run on pool "{word}", which '
            f"{'may have no node' if empty else 'runs jobs'}",
            path=path,
            severity=Severity.ERROR if empty else Severity.WARNING,
            hint="name a controller or login pool, or leave pool out",
            relies_on=(path, ("pools", word, "role"), ("pools", word, "count")),
        )


@check("GC561", summary="A directory is queried over an unencrypted connection.")
def ldap_without_tls(context: CheckContext) -> Iterator[Finding]:
    """ldap:// sends names and passwords in the clear, and nothing proves who answers.

    SSSD refuses to check passwords over it unless the connection is upgraded (StartTLS). Write
    ldaps://.
    """
    directory = context.directory
    if directory is not None and directory.ldap.startswith("ldap://"):
        yield Finding(
            summary=f"{directory.ldap} is not encrypted",
            path=("users", "ldap"),
            severity=Severity.WARNING,
            hint=f"write ldaps://{directory.ldap.removeprefix('ldap://')}",
        )


@check(
    "GC562",
    summary="A directory has a bind DN without a password, or a password without a bind DN.",
)
def ldap_bind_incomplete(context: CheckContext) -> Iterator[Finding]:
    """`bind_dn` and `bind_password` belong together; without both it is queried anonymously."""
    directory = context.directory
    if directory is None or (directory.bind_dn is None) == (directory.bind_password is None):
        return
    given, missing = "bind_dn", "bind_password"
    if directory.bind_dn is None:
        given, missing = missing, given
    path: PathTuple = ("users", given)
    yield Finding(
        summary=f"users names a {given}, but no {missing}",
        path=path,
        at_key=True,
        hint="add bind_password: env:LDAP_PASSWORD (a reference, never the password)"
        if missing == "bind_password"
        else "add bind_dn, or remove bind_password",
        relies_on=(path, ("users", missing)),
    )


@check("GC563", summary="A directory's search base or range of ids is not specified.")
def ldap_search_base_missing(context: CheckContext) -> Iterator[Finding]:
    """SSSD needs a search base: `base`, else the domain of the directory's host.

    An address or a name without a domain has none. `ids` goes from `min` up to `max`.
    """
    directory = context.directory
    if directory is None:
        return
    if directory.search_base is None:
        yield Finding(
            summary=f"{directory.ldap} has no domain to derive the search base from",
            path=("users", "ldap"),
            hint="add base: dc=example,dc=edu",
            relies_on=(("users", "ldap"), ("users", "base")),
        )
    ids = directory.ids
    if ids.max is not None and ids.max < ids.min:
        yield Finding(
            summary=f"ids from {ids.min} up to {ids.max} are none",
            path=("users", "ids", "max"),
            hint=f"write a number above {ids.min}, or leave max out",
            relies_on=(("users", "ids"),),
        )
