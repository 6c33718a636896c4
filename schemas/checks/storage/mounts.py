"""Mount points, the way to the servers behind them, and local disks."""

from __future__ import annotations

from collections.abc import Iterator

from ...derived.storage import MountTable, mount_point
from ...derived.subnets import zone_of_storage
from ...diagnostics import PathTuple, Severity
from ...spec import AwsSite, NfsStorage, ObjectStorage, ScratchStorage
from ...structure.fix.edits import Remove
from ..context import CheckContext
from ..network.links import cut_off
from ..registry import Finding, check

_WHOLE = (
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/lib",
    "/lib64",
    "/proc",
    "/root",
    "/run",
    "/sbin",
    "/sys",
)
"""Folders of the system (Filesystem Hierarchy Standard 3.0): nothing is mounted in them either."""
_ITSELF = frozenset(
    ["/", "/tmp", "/usr", "/usr/bin", "/usr/lib", "/usr/sbin", "/usr/share", "/var",  # noqa: S108  # mount points
     "/var/cache", "/var/lib", "/var/log", "/var/run", "/var/spool", "/var/tmp"]  # noqa: S108  # mount points
)  # fmt: skip
"""Folders of the system in which something may be mounted: /usr/local, /var/spool/slurm."""


@check("GC404", summary="Two storages are mounted at the same place on the same nodes.")
def same_mount_point(context: CheckContext) -> Iterator[Finding]:
    """A node sees one file system at one place.

    Of two the second would hide the first. The same place is fine on different nodes: a job finds
    its data at /lustre at every site. Say which pools mount which with `pools` or `site`.
    """
    table = MountTable(context.pools)
    for name, storage in context.storage.items():
        before = table.other(mount_point(storage), storage)
        table.add(name, storage)
        if before is None:
            continue
        path = ("storage", name, "mount")
        first = ("storage", before, "mount")
        yield Finding(
            summary=f'storage "{name}" is mounted at {storage.mount} like "{before}", '
            f"line {context.line_of(first)}",
            path=path,
            hint="choose another place, or give each its own pools",
            relies_on=(
                path,
                first,
                *(("storage", one, key) for one in (name, before) for key in ("pools", "site")),
                ("pools", "*", "site"),
            ),
        )


@check("GC405", summary="A mount point is a folder that the system needs.")
def system_folder(context: CheckContext) -> Iterator[Finding]:
    """Storage is mounted next to the system, not over it.

    A file system over /usr, /etc or /var hides what the node boots and runs from. /home, /opt,
    /srv, /data and folders of your own are free; so is /tmp for the nodes' own disks.
    """
    for name, storage in context.storage.items():
        mount = mount_point(storage)
        own_disks = mount == "/tmp" and isinstance(storage, ScratchStorage)  # noqa: S108  # a mount point
        if not own_disks and (
            mount in _ITSELF or any(f"{mount}/".startswith(f"{folder}/") for folder in _WHOLE)
        ):
            yield Finding(
                summary=f'storage "{name}" would hide {mount}, which the system needs',
                path=("storage", name, "mount"),
                hint=f"mount it elsewhere, such as /data/{name}",
            )


@check("GC406", summary="A storage is mounted over one that was mounted before it.")
def covered_mount_point(context: CheckContext) -> Iterator[Finding]:
    """Storage is mounted in the order of the file: the outer folder first.

    With /data/raw before /data, the second hides the first until the node starts again.
    """
    later = MountTable(context.pools)
    for name, storage in reversed(context.storage.items()):
        mount = mount_point(storage)
        outer = mount.rpartition("/")[0]
        while outer:
            over = later.other(outer, storage)
            if over is not None:
                yield _covered(context, name, over)
                break
            outer = outer.rpartition("/")[0]
        later.add(name, storage)


def _covered(context: CheckContext, name: str, over: str) -> Finding:
    path = ("storage", name, "mount")
    outer = ("storage", over, "mount")
    storage = context.storage
    return Finding(
        summary=f'storage "{name}" at {storage[name].mount} is hidden by "{over}" at '
        f"{storage[over].mount}, which is mounted after it",
        path=path,
        severity=Severity.WARNING,
        hint=f"move {name} below {over}, line {context.line_of(outer)}",
        relies_on=(
            path,
            outer,
            *(("storage", one, key) for one in (name, over) for key in ("pools", "site")),
            ("pools", "*", "site"),
        ),
    )


_SLOW_S = 0.010
"""Round trip in seconds from which a mounted file system is called slow: opening, reading and
closing a file are at least three of them, so that 1,000 small files take half a minute."""


def _far(context: CheckContext) -> Iterator[tuple[str, str, str, PathTuple]]:
    """Yield (storage, its site, another site that mounts it, where that is said)."""
    for name, storage in context.storage.items():
        home = context.mounts.home(name)
        if home is None or isinstance(storage, ObjectStorage | ScratchStorage):
            continue
        if storage.pools:
            for index, pool in enumerate(storage.pools):
                if pool in context.pools and context.pools[pool].site != home:
                    where = ("storage", name, "pools", index)
                    yield name, home, context.pools[pool].site, where
        elif storage.site is None:
            for site in context.pools_of_site:
                if site != home:
                    yield name, home, site, ("storage", name)


@check("GC407", summary="Nodes mount storage of a site that no route leads to.")
def storage_unreachable(context: CheckContext) -> Iterator[Finding]:
    """Nodes at another site reach a file system over a link between the two sites.

    `links` says how sites are joined; WireGuard is set up by gcluster, other routes exist already.
    Buckets need no link. A site whose nodes can't even reach the controllers is reported as such
    (GC710). Nothing is said about two sites that are no clouds: their networks may be
    routed without gcluster.
    """
    cut = cut_off(context)
    for name, home, site, path in _far(context):
        if context.are_apart(home, site) and not {home, site} & cut.keys():
            yield Finding(
                summary=f'storage "{name}" is at site "{home}", but nodes at "{site}" mount it '
                "and no link joins the two",
                path=path,
                at_key=path == ("storage", name),
                hint=f"add to links: {{between: [{home}, {site}]}}, or name the pools that mount "
                "it",
                relies_on=(
                    ("storage", name),
                    ("links",),
                    ("pools", "*", "site"),
                ),
            )


@check("GC408", summary="Nodes mount storage over a slow link.")
def storage_over_slow_link(context: CheckContext) -> Iterator[Finding]:
    """A file system over a wide-area link is slow in proportion to the round trip.

    Opening, reading and closing a file wait for at least three round trips: at 30 ms, 1,000 small
    files, such as the import of a Python package, take a minute and a half. Keep a copy at the
    other site (`copy_of`), or let only pools at its own site mount it. From 10 ms on this is said,
    where the link gives its `latency`.
    """
    for name, home, site, path in _far(context):
        latency = context.routes.latency(home, site)
        if latency is None or latency < _SLOW_S:
            continue
        yield Finding(
            summary=f'nodes at site "{site}" mount storage "{name}" over {latency * 1000:g} ms',
            path=path,
            at_key=path == ("storage", name),
            severity=Severity.WARNING,
            hint=f'keep a copy at site "{site}", mounted at '
            f"{context.storage[name].mount} there, with copy_of: {name}",
            relies_on=(("storage", name), ("links",), ("pools", "*", "site")),
        )


@check("GC449", summary="A cloud's compute nodes serve storage.")
def served_by_compute(context: CheckContext) -> Iterator[Finding]:
    """What a host serves in a cloud lies on a disk of its own, which outlives the host.

    Controllers and logins are machines of their own, to which such a disk is attached. Compute
    nodes come and go, several in one resource, and what they serve would go with them.
    """
    for name, storage in context.storage.items():
        if not isinstance(storage, NfsStorage) or storage.server not in context.pools:
            continue
        pool = context.pools[storage.server]
        site = context.sites.get(pool.site)
        if site is not None and site.is_cloud and pool.role == "compute":
            path: PathTuple = ("storage", name, "server")
            others = [n for n, p in context.pools.items() if p.role != "compute"]
            yield Finding(
                summary=f'storage "{name}" would be served by pool "{storage.server}", whose nodes '
                "come and go with their disks",
                path=path,
                hint=f"write server: {others[0]}" if others else "let a controller serve it",
                relies_on=(path, ("pools", storage.server)),
            )


@check("GC456", summary="A size is given for an export that gets no disk of its own.")
def export_size_unused(context: CheckContext) -> Iterator[Finding]:
    """`capacity` is for what a controller or login of a cloud serves: gcluster makes a disk for it.

    On hosts that exist the folder lies where it lies, and a server of your own has its own size.
    """
    for name, storage in context.storage.items():
        if not isinstance(storage, NfsStorage) or storage.capacity is None:
            continue
        pool = context.pools.get(storage.server or "")
        site = None if pool is None else context.sites.get(pool.site)
        if pool is None or (site is not None and not site.is_cloud):
            path: PathTuple = ("storage", name, "capacity")
            yield Finding(
                summary=f'storage "{name}": no disk is made for it',
                path=path,
                at_key=True,
                hint="remove capacity",
                relies_on=(path, ("storage", name, "server"), ("pools", "*", "site")),
                fix=Remove(path),
            )


@check("GC466", summary="Who may mount is said of an export that another server has.")
def export_rules_unused(context: CheckContext) -> Iterator[Finding]:
    """`clients` and `root` are for what a pool's host exports.

    A server that exists has rules of its own for who mounts it, and who root is there.
    """
    for name, storage in context.storage.items():
        if not isinstance(storage, NfsStorage) or storage.server is None:
            continue
        if storage.server in (context.declared_pools or {storage.server}):
            continue
        for key in ("clients", "root"):
            path: PathTuple = ("storage", name, key)
            if getattr(storage, key):
                yield Finding(
                    summary=f'storage "{name}": {storage.server} decides itself about {key}',
                    path=path,
                    at_key=True,
                    hint=f"remove {key}",
                    relies_on=(path, ("storage", name, "server")),
                    fix=Remove(path),
                )


@check("GC467", summary="A file system in a zone that an existing network has no subnet for.")
def zone_without_subnet(context: CheckContext) -> Iterator[Finding]:
    """In a network that is made each zone gets a subnet; in one that exists AWS has the named one.

    What FSx makes is in that subnet, whatever zone the spec says for it.
    """
    for name, storage in context.storage.items():
        site, zone = (
            context.sites.get(getattr(storage, "site", None) or ""),
            zone_of_storage(storage),
        )
        if not isinstance(site, AwsSite) or site.network.vpc is None:
            continue
        if zone is not None and zone != site.zone_id:
            path: PathTuple = ("storage", name, "zone")
            yield Finding(
                summary=f'storage "{name}" is to be in {zone}, and the network that exists has '
                f"subnets.compute in {site.zone_id or 'a zone that is not said'}",
                path=path,
                hint="leave zone out: it is made in that subnet, or name one of that zone there",
                relies_on=(path, ("sites",)),
            )


@check("GC409", summary="Local disks are named for nodes of another site.")
def local_disks_at_other_site(context: CheckContext) -> Iterator[Finding]:
    """local-nvme is the nodes' own disks: `pools` are pools of its `site`."""
    for name, storage in context.storage.items():
        if not isinstance(storage, ScratchStorage) or storage.site is None:
            continue
        for index, word in enumerate(storage.pools):
            pool = context.pools.get(word)
            if pool is None or pool.site == storage.site:
                continue
            path: PathTuple = ("storage", name, "pools", index)
            yield Finding(
                summary=f'storage "{name}" is for site "{storage.site}", '
                f'but pool "{word}" is at "{pool.site}"',
                path=path,
                hint="leave site out: the pools say where the disks are",
                relies_on=(path, ("storage", name, "site"), ("pools", word, "site")),
            )


def _scratch(context: CheckContext) -> Iterator[tuple[str, ScratchStorage]]:
    for name, storage in context.storage.items():
        if isinstance(storage, ScratchStorage):
            yield name, storage


@check("GC441", summary="Machines without local disks are to use theirs.")
def local_disks_missing(context: CheckContext) -> Iterator[Finding]:
    """local-nvme needs machines that have NVMe disks in addition to the one they boot from.

    Without any the folder would lie on the boot disk and fill it. Nothing is said of machine types
    whose disks the catalog doesn't know. Name the pools that have some with `pools`.
    """
    for name, _ in _scratch(context):
        without = [
            pool
            for pool in context.mounts.mounted_by(name)
            if (machine := context.machine(context.pools[pool])) is not None
            and machine.nvme_gb == 0
        ]
        if not without:
            continue
        path: PathTuple = ("storage", name)
        kinds = sorted({context.pools[pool].machine or "" for pool in without})
        yield Finding(
            summary=f'storage "{name}": {", ".join(kinds)} (pool {", ".join(without)}) '
            f"{'has' if len(kinds) == 1 else 'have'} no local disks",
            path=path,
            at_key=True,
            hint="name the pools that have some: pools: [...]",
            relies_on=(path, *((("pools", pool, "machine")) for pool in without)),
        )


@check("GC442", summary="Disks would be formatted without the word that allows it.")
def disk_format_not_allowed(context: CheckContext) -> Iterator[Finding]:
    """Nothing is wiped unless the spec says `format: true`.

    The disks become one striped file system, and what they hold now is lost.
    """
    for name, storage in _scratch(context):
        if not storage.format:
            path: PathTuple = ("storage", name)
            yield Finding(
                summary=f'storage "{name}" needs the nodes\' NVMe disks formatted, and the spec '
                "does not allow it",
                path=path,
                at_key=True,
                hint="add format: true when what is on the disks may be lost",
                relies_on=((*path, "format"),),
            )


@check("GC443", summary="Homes lie on disks that are empty after each start.")
def homes_on_ephemeral_disks(context: CheckContext) -> Iterator[Finding]:
    """Local disks are scratch: each node has its own, and they are empty after each start.

    So /home there is another one on each node, and gone with the node.
    """
    for name, storage in _scratch(context):
        if storage.mount.rstrip("/") == "/home":
            yield Finding(
                summary=f'storage "{name}" puts /home on local disks: another one on each node, '
                "empty after each start",
                path=("storage", name, "mount"),
                hint="serve /home over NFS or Lustre, and mount the disks at /scratch",
            )
