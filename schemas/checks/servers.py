"""Hosts of the spec that serve file systems, and servers that exist."""

from __future__ import annotations

from collections.abc import Iterator

from ..diagnostics import PathTuple, Severity
from ..spec import NfsStorage
from .context import CheckContext
from .lustre import lustre
from .registry import Finding, check


@check("GC419", summary="Lustre servers have something else to do.")
def busy_lustre_servers(context: CheckContext) -> Iterator[Finding]:
    """Hosts that serve Lustre do nothing else: no jobs, no logins, no scheduler.

    A job that fills a server's memory stops the file system for everybody. Give them a pool of
    their own that no partition names; without any `partitions` every compute pool takes jobs.
    """
    scheduler = context.scheduler
    partitions = scheduler.partitions if scheduler is not None else {}
    in_partition = {pool: name for name, one in partitions.items() for pool in one.pools}
    for name, storage in lustre(context):
        pool = context.pools.get(storage.servers.pool) if storage.servers is not None else None
        if storage.servers is None or pool is None:
            continue
        word = storage.servers.pool
        if pool.role != "compute":
            busy = f"is a {pool.role}"
        elif word in in_partition:
            busy = f'runs the jobs of partition "{in_partition[word]}"'
        elif not partitions and scheduler is not None:
            busy = "runs jobs: without partitions every compute pool does"
        else:
            continue
        path: PathTuple = ("storage", name, "servers", "pool")
        yield Finding(
            summary=f'storage "{name}" is served by pool "{word}", which {busy}',
            path=path,
            hint="give the servers a pool of their own, and name partitions without it",
            relies_on=(path, ("pools", word, "role"), ("scheduler", "partitions")),
        )


def _exports(context: CheckContext) -> Iterator[tuple[str, NfsStorage]]:
    for name, storage in context.storage.items():
        if isinstance(storage, NfsStorage):
            yield name, storage


@check("GC421", summary="An NFS storage names no server.")
def nfs_without_server(context: CheckContext) -> Iterator[Finding]:
    """`server` is a pool whose first host exports the folder, or the address of a server."""
    controllers = [name for name, pool in context.pools.items() if pool.role == "controller"]
    for name, storage in _exports(context):
        if storage.server is None:
            yield Finding(
                summary=f'storage "{name}" does not say who serves it',
                path=("storage", name),
                at_key=True,
                hint=f"add server: {(controllers or ['10.0.0.9'])[0]}",
                relies_on=(("storage", name, "server"),),
            )


@check("GC422", summary="An NFS server looks like a pool, but is none.")
def nfs_server_is_no_pool(context: CheckContext) -> Iterator[Finding]:
    """A word that is no pool is taken for the address of a server.

    So a misspelt pool would be asked for over the network. A word that is close to a pool's name is
    an error, any other without a dot a warning: write the address or the full name of the server.
    """
    hosts = {host for group in context.host_groups for host in group.names or ()}
    pools = context.declared_pools or frozenset()
    for name, storage in _exports(context):
        word = storage.server
        if word is None or word in pools or word in hosts or "." in word or ":" in word:
            continue
        meant = context.suggest(word, pools)
        question = f': did you mean "{meant}"?' if meant else ""
        path: PathTuple = ("storage", name, "server")
        yield Finding(
            summary=f'storage "{name}": server "{word}" is neither a pool nor an address{question}',
            path=path,
            severity=Severity.ERROR if meant else Severity.WARNING,
            hint="name a pool, or a server by its address or full name",
            meant=meant,
            relies_on=(path, ("pools", "*", "hosts")),
        )


@check("GC423", summary="A pool that runs jobs serves NFS.")
def nfs_served_by_workers(context: CheckContext) -> Iterator[Finding]:
    """A node that runs jobs is a bad file server: a job can fill it or take it down.

    Let a controller or login pool serve, or a server that exists. Where the pool may have no node
    at all, there is nothing that could serve.
    """
    for name, storage in _exports(context):
        pool = context.pools.get(storage.server or "")
        if pool is None or pool.role != "compute":
            continue
        path: PathTuple = ("storage", name, "server")
        empty = pool.least == 0
        never = "; it may have no node" if empty else ""
        yield Finding(
            summary=f'storage "{name}": its server, pool "{storage.server}", runs jobs{never}',
            path=path,
            severity=Severity.ERROR if empty else Severity.WARNING,
            hint="let a controller or login pool serve it, or a server that exists",
            relies_on=(
                path,
                ("pools", storage.server or "", "role"),
                ("pools", storage.server or "", "count"),
            ),
        )
