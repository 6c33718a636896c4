"""The clouds' NFS services: where each is, what it is made with, and what goes together."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import get_args

from ...catalog import FileServiceOffer, ProviderFacts
from ...diagnostics import PathTuple
from ...spec import (
    AzureFilesStorage,
    EfsStorage,
    FileService,
    FilestoreStorage,
    OciFileStorage,
    OpenZfsStorage,
    SizedService,
    Storage,
)
from ...spec.units import ByteSize
from ...structure.fix.edits import Remove, Replace
from ..context import CheckContext
from ..registry import Finding, check

_GIB = 2.0**30
_MB = 1e6
_MIB = 2.0**20
_EFS_MIBPS = (1, 3414)
"""MiB/s that EFS provisions (EFS API, CreateFileSystem, ProvisionedThroughputInMibps)."""
_OF_EXISTING = frozenset(
    ("mount", "pools", "options", "copy_of", "stage_within", "site", "existing", "read_only",
     "protocol", "tls")
)  # fmt: skip
"""Keys that say how one is mounted; all others say how one is made."""


def _services(context: CheckContext) -> Iterator[tuple[str, FileService]]:
    for name, storage in context.storage.items():
        if isinstance(storage, FileService):
            yield name, storage


def _tag(kind: type[FileService]) -> str:
    return str(kind.__struct_config__.tag)


@check("GC460", summary="A file service at a site whose cloud doesn't have it.")
def file_service_elsewhere(context: CheckContext) -> Iterator[Finding]:
    """Each service is one cloud's: efs and fsx-openzfs are AWS', filestore is Google Cloud's.

    azure-files is Azure's, and oci-file-storage OCI's.

    Elsewhere name the service of that cloud. On bare metal a host of the spec serves NFS, or a
    server that exists (`type: nfs`).
    """
    kinds = [kind for kind in get_args(Storage) if issubclass(kind, FileService)]
    for name, storage in _services(context):
        site = context.sites.get(storage.site)
        if site is None or site.provider == storage.PROVIDER or not site.runs_jobs:
            continue
        there = [_tag(kind) for kind in kinds if site.provider == kind.PROVIDER]
        path: PathTuple = ("storage", name, "site")
        hint = f"write type: {' or '.join(there)}" if there else "write type: nfs, with a server"
        yield Finding(
            summary=f'storage "{name}": site "{storage.site}" ({site.provider}) has no '
            f"{storage.TITLE}",
            path=path,
            hint=f"{hint}, or name a site of {storage.PROVIDER}",
            relies_on=(path, ("storage", name, "type"), ("sites", "*", "provider")),
        )


def service_offers(storage: SizedService, facts: ProviderFacts) -> list[FileServiceOffer]:
    """Return the sizes that a service has of the kind that is requested."""
    tag = _tag(type(storage))
    return [o for o in facts.file_services if (o.type, o.kind) == (tag, storage.kind)]


def _sized(
    context: CheckContext,
) -> Iterator[tuple[str, SizedService, list[FileServiceOffer]]]:
    """Yield file systems that are made with a size, and what their service offers."""
    for name, storage in _services(context):
        facts = context.site_facts(storage.site)
        if isinstance(storage, SizedService) and storage.is_made and facts is not None:
            found = service_offers(storage, facts)
            if found:
                yield name, storage, found


@check("GC461", summary="A size that a cloud's file service does not make.")
def file_service_size(context: CheckContext) -> Iterator[Finding]:
    """Most file services make file systems of a given size, in the steps of their kind.

    The provider's entry in the catalog has the steps, with their source. EFS has no size: it is
    as large as what is put in.
    """
    for name, storage, fitting in _sized(context):
        path: PathTuple = ("storage", name, "capacity")
        needs = tuple(("storage", name, key) for key in ("capacity", "tier", "deployment", "site"))
        if storage.capacity is None:
            least = ByteSize(min(offer.minimum_gib for offer in fitting) * _GIB)
            yield Finding(
                summary=f'storage "{name}" does not say how large it is made',
                path=path[:-1],
                at_key=True,
                hint=f"add capacity: {least} or more ({_rule(fitting)}), or existing: its id",
                relies_on=needs,
            )
            continue
        requested = storage.capacity.value / _GIB
        below = max(_down(offer, requested) for offer in fitting)
        above = min(_up(offer, requested) for offer in fitting)
        if math.isclose(below, requested) or math.isclose(above, requested):
            continue
        near = [ByteSize(size * _GIB) for size in (below, above) if 0 < size < math.inf]
        which = f" ({storage.kind})" if storage.kind else ""
        yield Finding(
            summary=f'storage "{name}": {storage.TITLE}{which} is not made with {storage.capacity}',
            path=path,
            hint=f"the nearest {'sizes are' if len(near) > 1 else 'size is'} "
            f"{' and '.join(map(str, near))} ({_rule(fitting)})",
            relies_on=needs,
            fix=Replace(path, str(near[-1])) if above < math.inf else None,
        )


def _rule(fitting: list[FileServiceOffer]) -> str:
    return ", or ".join(
        f"{offer.minimum_gib:g} to {offer.maximum_gib:g} GiB in steps of {offer.step_gib:g} GiB"
        for offer in fitting
    )


def _up(offer: FileServiceOffer, requested: float) -> float:
    """Return the smallest size of an offer in GiB that holds what is requested; inf: none does."""
    steps = max(0, math.ceil((requested - offer.minimum_gib) / offer.step_gib - 1e-9))
    stepped = offer.minimum_gib + steps * offer.step_gib
    return stepped if stepped <= offer.maximum_gib else math.inf


def _down(offer: FileServiceOffer, requested: float) -> float:
    """Return the largest size of an offer in GiB that is at most the requested; 0: none."""
    steps = math.floor(
        (min(requested, offer.maximum_gib) - offer.minimum_gib) / offer.step_gib + 1e-9
    )
    return offer.minimum_gib + steps * offer.step_gib if steps >= 0 else 0.0


@check("GC462", summary="A throughput that a cloud's file service does not have.")
def file_service_throughput(context: CheckContext) -> Iterator[Finding]:
    """EFS provisions 1 to 3414 MiB/s where `throughput_mode: provisioned` says so.

    FSx for OpenZFS has servers of given steps, which differ between its generations, and one must
    be chosen. Both are what the services' APIs take.
    """
    for name, storage in _services(context):
        if isinstance(storage, EfsStorage) and storage.is_made:
            yield from _of_efs(name, storage)
    for name, sized, fitting in _sized(context):
        if not isinstance(sized, OpenZfsStorage):
            continue
        path: PathTuple = ("storage", name, "throughput")
        steps = [step for offer in fitting for step in offer.throughput_mb_per_s]
        rates = ", ".join(f"{step:g}" for step in steps)
        needs = (path, ("storage", name, "deployment"))
        if sized.throughput is None:
            yield Finding(
                summary=f'storage "{name}" does not say its throughput',
                path=path[:-1],
                at_key=True,
                hint=f"add throughput: one of {rates} MB/s",
                relies_on=needs,
            )
        elif not any(math.isclose(sized.throughput.value / _MB, step) for step in steps):
            yield Finding(
                summary=f'storage "{name}": {sized.TITLE} ({sized.kind}) has no server with '
                f"{sized.throughput}",
                path=path,
                hint=f"choose one of {rates} MB/s",
                relies_on=needs,
            )


def _of_efs(name: str, storage: EfsStorage) -> Iterator[Finding]:
    path: PathTuple = ("storage", name, "throughput")
    needs = (path, ("storage", name, "throughput_mode"))
    least, most = _EFS_MIBPS
    if storage.throughput_mode != "provisioned":
        if storage.throughput is not None:
            yield Finding(
                summary=f'storage "{name}": throughput is of the mode provisioned, and its mode is '
                f"{storage.throughput_mode}",
                path=path,
                at_key=True,
                hint="write throughput_mode: provisioned, or remove throughput",
                relies_on=needs,
            )
    elif storage.throughput is None:
        yield Finding(
            summary=f'storage "{name}" does not say which throughput is provisioned',
            path=path[:-1],
            at_key=True,
            hint=f"add throughput: {least} to {most} MiB/s, or write throughput_mode: elastic",
            relies_on=needs,
        )
    elif not least <= storage.throughput.value / _MIB <= most:
        yield Finding(
            summary=f'storage "{name}": {storage.TITLE} provisions no {storage.throughput}',
            path=path,
            hint=f"write {least} to {most} MiB/s",
            relies_on=needs,
        )


@check("GC463", summary="A key sets how to create a file service's file system that exists.")
def file_service_key_of_created(context: CheckContext) -> Iterator[Finding]:
    """With `existing` nothing is made, so that its size, its key and its kind are what they are.

    How it is mounted can be said: `options`, `read_only`, and Filestore's `protocol`.
    """
    for name, storage in _services(context):
        if storage.is_made:
            continue
        unsaid = type(storage)(mount=storage.mount, site=storage.site)
        for key in type(storage).__struct_fields__:
            if key in _OF_EXISTING or getattr(storage, key) == getattr(unsaid, key):
                continue
            path: PathTuple = ("storage", name, key)
            yield Finding(
                summary=f'storage "{name}" is not made (it has existing), so {key} means nothing',
                path=path,
                at_key=True,
                hint=f"remove {key}",
                relies_on=(path, ("storage", name, "existing")),
                fix=Remove(path),
            )


@check("GC464", summary="Settings of a file service that its cloud doesn't take together.")
def file_service_settings_clash(context: CheckContext) -> Iterator[Finding]:
    """What a service's API would refuse, or leave out.

    EFS: max-io has no elastic throughput. Filestore: the basic tiers have NFS 3 alone, and a
    regional instance is in no zone. Azure Files: a share is made in a storage account of its own,
    whose name is unique in the world and so only yours to choose.
    """
    for name, storage in _services(context):
        if isinstance(storage, EfsStorage):
            if storage.performance_mode == "max-io" and storage.throughput_mode == "elastic":
                yield _clash(
                    name,
                    ("performance_mode", "throughput_mode"),
                    f"{storage.TITLE} has no elastic throughput with max-io",
                    "write throughput_mode: bursting, or remove performance_mode",
                )
        elif isinstance(storage, FilestoreStorage) and storage.is_made:
            if storage.tier.startswith("basic") and storage.protocol == "nfs-v4.1":
                yield _clash(
                    name,
                    ("protocol", "tier"),
                    f"{storage.TITLE} of the tier {storage.tier} supports NFS 3 alone",
                    "remove protocol, or write tier: zonal",
                )
            if storage.tier == "regional" and storage.zone is not None:
                yield _clash(
                    name,
                    ("zone", "tier"),
                    f"a regional {storage.TITLE} is in all zones of its region",
                    "remove zone, or write tier: zonal",
                )
    yield from _account(context)


def _account(context: CheckContext) -> Iterator[Finding]:
    """Yield shares of Azure Files without an account of their own."""
    named: dict[str, str] = {}
    for name, storage in _services(context):
        if not isinstance(storage, AzureFilesStorage) or not storage.is_made:
            continue
        path: PathTuple = ("storage", name, "account")
        if storage.account is None:
            yield Finding(
                summary=f'storage "{name}" does not say the name of its storage account',
                path=path[:-1],
                at_key=True,
                hint="add account: 3 to 24 lower-case letters and digits, unique in the world",
                relies_on=(path, ("storage", name, "existing")),
            )
        elif storage.account in named:
            yield Finding(
                summary=f'storage "{name}" has the account of "{named[storage.account]}"',
                path=path,
                hint="name another account",
                relies_on=(path, ("storage", named[storage.account], "account")),
            )
        else:
            named[storage.account] = name


def _clash(name: str, keys: tuple[str, str], why: str, hint: str) -> Finding:
    path: PathTuple = ("storage", name, keys[0])
    return Finding(
        summary=f'storage "{name}": {why}',
        path=path,
        hint=hint,
        relies_on=tuple(("storage", name, key) for key in keys),
    )


_WITHOUT_TLS = {
    OpenZfsStorage: "machines that AWS' Nitro encrypts between need nothing in the spec",
    FilestoreStorage: "Filestore encrypts by Kerberos alone, which needs a directory of its own",
    OciFileStorage: "Oracle publishes its client for Oracle Linux and CentOS alone, which "
    "gcluster doesn't install",
}
"""Services that nodes can't reach by TLS, and why.

docs.aws.amazon.com/fsx/latest/OpenZFSGuide/encryption-transit.html; cloud.google.com/filestore/docs
(encryption in transit); docs.oracle.com/iaas/Content/File/Tasks/intransitencryption.htm.
"""


@check("GC471", summary="TLS to a file service that nodes can't reach by TLS.")
def file_service_without_tls(context: CheckContext) -> Iterator[Finding]:
    """Nodes reach Amazon EFS and Azure Files by TLS, through a tunnel on each node.

    FSx for OpenZFS is encrypted by the network of AWS' machines, without a word in the spec.
    Filestore has Kerberos, and OCI File Storage a client for Oracle Linux and CentOS alone. Under
    Kubernetes its own NFS client mounts these services, which has no TLS.
    """
    for name, storage in _services(context):
        why = _WITHOUT_TLS.get(type(storage), "")
        if not why and context.kubernetes is not None:
            why = "the NFS client of Kubernetes mounts it, which has no TLS"
        if not storage.tls or not why:
            continue
        path: PathTuple = ("storage", name, "tls")
        yield Finding(
            summary=f'storage "{name}": nodes can\'t reach {storage.TITLE} by TLS: {why}',
            path=path,
            at_key=True,
            hint="remove tls; traffic stays in the network of the cluster",
            relies_on=(path, ("storage", name, "type"), ("scheduler", "type")),
            fix=Remove(path),
        )
