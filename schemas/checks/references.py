"""Names that refer to something else of the spec, and names that are given twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from ..diagnostics import PathTuple, listing
from ..spec import LustreStorage
from .context import CheckContext
from .network.links import gateway_path
from .registry import Finding, check


class Reference(NamedTuple):
    """A name, who says it, and where."""

    who: str
    word: str
    path: PathTuple


def _listed(who: str, words: Iterable[str], path: PathTuple) -> Iterator[Reference]:
    """Yield a reference for each item of a list."""
    for index, word in enumerate(words):
        yield Reference(who, word, (*path, index))


def _unknown(
    context: CheckContext, references: Iterable[Reference], key: str, kind: str
) -> Iterator[Finding]:
    """Yield a finding for each reference that is not declared under `key` ("scheduler.qos")."""
    declared = context.declared(key)
    names = declared or frozenset()
    unsure: tuple[PathTuple, ...] = () if declared is not None else (tuple(key.split(".")),)
    hint = f"declared: {listing(names)}" if names else f"declare it under {key}"
    for who, word, path in references:
        if word in names:
            continue
        suggestion = context.suggest(word, names)
        question = f': did you mean "{suggestion}"?' if suggestion else ""
        yield Finding(
            summary=f'{who} names an unknown {kind} "{word}"{question}',
            path=path,
            hint=hint,
            relies_on=(path, *unsure),
            suggestion=suggestion,
        )


@check("GC401", summary="A storage names a site that is not declared.")
def unknown_storage_site(context: CheckContext) -> Iterator[Finding]:
    """A storage's `site` is one of the names under `sites`.

    It is the site that has the file system, or whose cloud makes it.
    """
    named = (
        Reference(f'storage "{name}"', storage.site, ("storage", name, "site"))
        for name, storage in context.storage.items()
        if storage.site is not None
    )
    yield from _unknown(context, named, "sites", "site")


@check("GC402", summary="A storage names a pool that is not declared.")
def unknown_storage_pool(context: CheckContext) -> Iterator[Finding]:
    """The pools that mount a storage, and the pool that serves it, are names under `pools`.

    Without `pools` every pool of its site mounts it, or every pool where it has no site.
    """
    yield from _unknown(context, _storage_pools(context), "pools", "pool")


def _storage_pools(context: CheckContext) -> Iterator[Reference]:
    for name, storage in context.storage.items():
        who = f'storage "{name}"'
        yield from _listed(who, storage.pools, ("storage", name, "pools"))
        if isinstance(storage, LustreStorage) and storage.servers is not None:
            path = ("storage", name, "servers", "pool")
            yield Reference(who, storage.servers.pool, path)


@check("GC575", summary="A hook names a pool that is not declared.")
def unknown_hook_pool(context: CheckContext) -> Iterator[Finding]:
    """The pools of a hook are names under `pools`; without any it is for all that it can be for."""
    named = (
        each
        for name, hook in context.hooks.items()
        for each in _listed(f'hook "{name}"', hook.pools, ("hooks", name, "pools"))
    )
    yield from _unknown(context, named, "pools", "pool")


@check("GC403", summary="A storage is named that is not declared.")
def unknown_storage(context: CheckContext) -> Iterator[Finding]:
    """`copy_of`, `state_save`, a spill's `data`, checkpoints and workloads name storage."""
    yield from _unknown(context, _storages(context), "storage", "storage")


def _storages(context: CheckContext) -> Iterator[Reference]:
    for name, storage in context.storage.items():
        if storage.copy_of is not None:
            path: PathTuple = ("storage", name, "copy_of")
            yield Reference(f'storage "{name}"', storage.copy_of, path)
    if context.checkpointing is not None:
        word = context.checkpointing.storage
        yield Reference("checkpointing", word, ("checkpointing", "storage"))
    if context.slurm is not None and context.slurm.state_save is not None:
        yield Reference("the scheduler", context.slurm.state_save, ("scheduler", "state_save"))
    for name, spill in context.spills.items():
        path = ("scheduler", "partitions", name, "spill", "only", "data")
        yield from _listed(f'the spill of partition "{name}"', spill.only.data, path)
    for name, workload in context.workloads.items():
        at: PathTuple = ("workloads", name)
        yield from _listed(f'workload "{name}"', workload.data, (*at, "data"))
        if workload.checkpoint is not None:
            path = (*at, "checkpoint", "to")
            yield Reference(f'workload "{name}"', workload.checkpoint.to, path)
            for index, to in enumerate(workload.checkpoint.copies):
                if "://" not in to:
                    path = (*at, "checkpoint", "copies", index)
                    yield Reference(f'workload "{name}"', to, path)


@check("GC514", summary="A quality of service is named that is not declared.")
def unknown_qos(context: CheckContext) -> Iterator[Finding]:
    """A QOS that a partition, an account, a workload or another QOS names is in `scheduler.qos`."""
    yield from _unknown(context, _qualities(context), "scheduler.qos", "QOS")


def _qualities(context: CheckContext) -> Iterator[Reference]:
    at = ("scheduler",)
    if context.scheduler is None:
        return
    for name, partition in context.scheduler.partitions.items():
        path: PathTuple = (*at, "partitions", name)
        yield from _listed(f'partition "{name}"', partition.qos, (*path, "qos"))
        if partition.spill is not None:
            where = (*path, "spill", "only", "qos")
            who = f'the spill of partition "{name}"'
            yield from _listed(who, partition.spill.only.qos, where)
    for name, qos in context.scheduler.qos.items():
        yield from _listed(f'QOS "{name}"', qos.preempts, (*at, "qos", name, "preempts"))
    for name, account in context.scheduler.accounts.items():
        path = (*at, "accounts", name)
        yield from _listed(f'account "{name}"', account.qos, (*path, "qos"))
        if account.default_qos is not None:
            yield Reference(f'account "{name}"', account.default_qos, (*path, "default_qos"))
    for name, workload in context.workloads.items():
        if workload.qos is not None:
            yield Reference(f'workload "{name}"', workload.qos, ("workloads", name, "qos"))


@check("GC515", summary="An account is named that is not declared.")
def unknown_account(context: CheckContext) -> Iterator[Finding]:
    """What a partition, a spill, a workload or another account names is under `accounts`."""
    yield from _unknown(context, _accounts(context), "scheduler.accounts", "account")


def _accounts(context: CheckContext) -> Iterator[Reference]:
    at = ("scheduler",)
    if context.scheduler is None:
        return
    for name, partition in context.scheduler.partitions.items():
        path: PathTuple = (*at, "partitions", name)
        yield from _listed(f'partition "{name}"', partition.accounts, (*path, "accounts"))
        if partition.spill is not None:
            where = (*path, "spill", "only", "accounts")
            who = f'the spill of partition "{name}"'
            yield from _listed(who, partition.spill.only.accounts, where)
    for name, account in context.scheduler.accounts.items():
        if account.parent is not None:
            path = (*at, "accounts", name, "parent")
            yield Reference(f'account "{name}"', account.parent, path)
    for name, workload in context.workloads.items():
        if workload.account is not None:
            path = ("workloads", name, "account")
            yield Reference(f'workload "{name}"', workload.account, path)


@check("GC516", summary="A service names a pool that is not declared.")
def unknown_service_pool(context: CheckContext) -> Iterator[Finding]:
    """Maintenance windows, accounting and monitoring name pools of `pools`."""
    yield from _unknown(context, _service_pools(context), "pools", "pool")


def _service_pools(context: CheckContext) -> Iterator[Reference]:
    slurm = context.slurm
    for name, window in context.maintenance.items():
        path: PathTuple = ("scheduler", "maintenance", name, "pools")
        yield from _listed(f'maintenance "{name}"', window.pools, path)
    if slurm is not None and slurm.accounting is not None and slurm.accounting.pool is not None:
        path = ("scheduler", "accounting", "pool")
        yield Reference("accounting", slurm.accounting.pool, path)
    if context.monitoring is not None and context.monitoring.pool is not None:
        yield Reference("monitoring", context.monitoring.pool, ("monitoring", "pool"))


@check("GC517", summary="An account has a member that is not in the list of users.")
def unknown_member(context: CheckContext) -> Iterator[Finding]:
    """Where `users` is a list, the members of accounts are in it.

    A name that is not there can't log in, so it can't use the account's share either. Nothing is
    said where users come from a directory, or where there is no list.
    """
    known = {user.name for user in context.users}
    if context.scheduler is None or not known:
        return
    for name, account in context.scheduler.accounts.items():
        for index, member in enumerate(account.users):
            if member in known:
                continue
            path = ("scheduler", "accounts", name, "users", index)
            suggestion = context.suggest(member, known)
            question = f': did you mean "{suggestion}"?' if suggestion else ""
            yield Finding(
                summary=f'account "{name}" has a member "{member}" who is no user{question}',
                path=path,
                hint=f"users: {listing(known)}",
                relies_on=(path, ("users",)),
                suggestion=suggestion,
            )


@check("GC701", summary="A spill goes to a pool that is not declared.")
def unknown_spill_target(context: CheckContext) -> Iterator[Finding]:
    """`spill.to` is a compute pool under `pools`."""
    named = (
        Reference(
            f'the spill of partition "{name}"',
            spill.to,
            ("scheduler", "partitions", name, "spill", "to"),
        )
        for name, spill in context.spills.items()
    )
    yield from _unknown(context, named, "pools", "pool")


@check("GC702", summary="A link names a site that is not declared.")
def unknown_link_site(context: CheckContext) -> Iterator[Finding]:
    """`between` names two entries of `sites`."""
    named = (
        reference
        for index, link in enumerate(context.links)
        for reference in _listed("a link", link.between, ("links", index, "between"))
    )
    yield from _unknown(context, named, "sites", "site")


@check("GC703", summary="A link names a gateway that is not declared.")
def unknown_gateway(context: CheckContext) -> Iterator[Finding]:
    """`gateway` is a pool under `pools`; its first host is the site's end of the tunnel."""
    named = (
        Reference("a link", name, gateway_path(index, link, number))
        for index, link in enumerate(context.links)
        for number, name in enumerate(link.gateways)
    )
    yield from _unknown(context, named, "pools", "pool")


T = TypeVar("T")


def repeated(sources: Iterable[tuple[T, Sequence[str]]]) -> Iterator[tuple[T, T, list[str]]]:
    """Yield (source, earlier source, words) for the words of a source that an earlier one has.

    Words that one source says twice come with the source itself as the earlier one. Linear in
    the number of words.
    """
    first_source: dict[str, int] = {}
    all_sources: list[T] = []
    for index, (source, words) in enumerate(sources):
        all_sources.append(source)
        again: dict[int, list[str]] = {}
        for word in words:
            before = first_source.setdefault(word, index)
            if before != index:
                again.setdefault(before, []).append(word)
        if len(set(words)) != len(words):
            again.setdefault(index, []).extend(w for w, n in Counter(words).items() if n > 1)
        for before, repeats in again.items():
            yield source, all_sources[before], repeats
