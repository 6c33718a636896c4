"""Object storage: buckets, and copies of data at other sites."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...derived.graph import cycles
from ...diagnostics import PathTuple, Severity
from ...spec import LustreStorage, ObjectStorage
from ...structure.fix.edits import Remove
from ..context import CheckContext
from ..registry import Finding, check
from .lustre import lustre


def _scheme(url: str) -> str:
    return url.split(":", 1)[0]


def _schemes(context: CheckContext, site: str | None) -> list[str]:
    """Return the schemes of a site's own buckets; empty where it has none or that isn't known."""
    facts = context.site_facts(site)
    return [] if facts is None else facts.bucket_schemes


def _buckets(context: CheckContext) -> Iterator[tuple[str, ObjectStorage]]:
    for name, storage in context.storage.items():
        if isinstance(storage, ObjectStorage):
            yield name, storage


@check("GC431", summary="Nodes of one cloud mount a bucket of another.")
def bucket_cloud_mismatch(context: CheckContext) -> Iterator[Finding]:
    """A bucket of another cloud works with its keys, but every byte leaves that cloud.

    The traffic is slow and paid for (egress), and the nodes' own identity does not open it. Keep a
    copy in a bucket of the site's cloud.
    """
    for name, storage in _buckets(context):
        own = _schemes(context, storage.site)
        if own and _scheme(storage.bucket) not in own:
            path: PathTuple = ("storage", name, "bucket")
            yield Finding(
                summary=f'storage "{name}": {_scheme(storage.bucket)}:// is not the object storage '
                f'of site "{storage.site}"',
                path=path,
                severity=Severity.WARNING,
                hint=f"keep the data in a bucket of {own[0]}://, in the site's region",
                relies_on=(path, ("storage", name, "site")),
            )


_UNMOUNTED = "oci"
"""Scheme of the buckets that no role mounts: OCI's client, ocifs, is Oracle Linux' alone."""


@check("GC465", summary="A bucket that no role mounts.")
def bucket_not_mounted(context: CheckContext) -> Iterator[Finding]:
    """Buckets of OCI are mounted on no node: there is no client of theirs here.

    Jobs reach them by OCI's tools, and a Lustre file system of the site shows their objects as
    files (`type: lustre` with `import`). With `create: true` the bucket is made all the same: then
    it is a warning.
    """
    for name, storage in _buckets(context):
        if _scheme(storage.bucket) == _UNMOUNTED:
            path: PathTuple = ("storage", name, "bucket")
            made = " it is made, and" if storage.create else ""
            yield Finding(
                summary=f'storage "{name}":{made} no node mounts {storage.bucket}',
                path=path,
                severity=Severity.WARNING if storage.create else Severity.ERROR,
                hint=f"write type: lustre with import: {storage.bucket}, or read it in jobs by "
                "OCI's own tools",
                relies_on=(path, ("storage", name, "create")),
            )


@check("GC432", summary="Managed Lustre imports from, or exports to, a bucket it can't reach.")
def lustre_bucket_cloud_mismatch(context: CheckContext) -> Iterator[Finding]:
    """A managed file system is linked with buckets of its own cloud only."""
    for name, storage in lustre(context):
        own = _schemes(context, storage.site)
        for key, url in (("import", storage.import_from), ("export", storage.export_to)):
            if not own or url is None or _scheme(url) in own:
                continue
            path: PathTuple = ("storage", name, key)
            yield Finding(
                summary=f'storage "{name}": Lustre at site "{storage.site}" can\'t be linked with '
                f"{url}",
                path=path,
                hint=f"use a bucket of {' or '.join(f'{scheme}://' for scheme in own)}",
                relies_on=(path, ("storage", name, "site")),
            )


@check("GC433", summary="The cloud that makes a bucket is not specified, or can't make it.")
def bucket_site_missing(context: CheckContext) -> Iterator[Finding]:
    """`create: true` makes the bucket at `site`, or at the only site whose cloud has such ones."""
    for name, storage in _buckets(context):
        if not storage.create:
            continue
        scheme = _scheme(storage.bucket)
        if storage.site is not None:
            makers = [storage.site] if scheme in _schemes(context, storage.site) else []
            if storage.site not in context.sites:
                continue
        else:
            makers = [site for site in context.sites if scheme in _schemes(context, site)]
        if len(makers) == 1:
            continue
        path: PathTuple = ("storage", name, "create")
        yield Finding(
            summary=f'storage "{name}": several sites could make {storage.bucket}'
            if makers
            else f'storage "{name}": no site of the spec has {scheme}:// buckets',
            path=path,
            hint=f"add site: {makers[0]}"
            if makers
            else f"remove create and make it yourself, or declare the site whose cloud has "
            f"{scheme}://",
            relies_on=(
                path,
                ("storage", name, "site"),
                ("storage", name, "bucket"),
                ("sites", "*", "provider"),
            ),
        )


_FOLDERS = {"gs", "az"}
"""Schemes of buckets that can have a hierarchical namespace."""


@check("GC470", summary="A bucket can't have a hierarchical namespace, or has one already.")
def hierarchical_namespace_impossible(context: CheckContext) -> Iterator[Finding]:
    """`hierarchical_namespace` makes a bucket's folders real ones (Google Cloud, Azure).

    It is said when the bucket is made: of one of Google's that exists, gcsfuse sees it by itself.
    On Azure it is the account's, so that all its containers have it or none; of an account that
    exists it is said here too, for it is mounted otherwise.
    """
    accounts: dict[str, tuple[str, bool]] = {}
    for name, storage in _buckets(context):
        path: PathTuple = ("storage", name, "hierarchical_namespace")
        scheme, has = _scheme(storage.bucket), storage.hierarchical_namespace
        account = storage.bucket.removeprefix("az://").partition("/")[0]
        if has and scheme not in _FOLDERS:
            what, hint = f"buckets of {scheme}:// have none", "remove it"
        elif has and scheme == "gs" and not storage.create:
            what, hint = f"{storage.bucket} exists: it is seen when it is mounted", "remove it"
        elif scheme == "az" and accounts.setdefault(account, (name, has))[1] != has:
            what = f'storage "{accounts[account][0]}" of account {account} says otherwise'
            hint = "say the same of all containers of an account"
        else:
            continue
        yield Finding(
            summary=f'storage "{name}": hierarchical_namespace: {what}',
            path=path if has else ("storage", name),
            at_key=True,
            hint=hint,
            relies_on=(path, ("storage", name, "bucket"), ("storage", name, "create")),
        )


@check("GC446", summary="A bucket's name is none that its cloud allows.")
def bucket_name_invalid(context: CheckContext) -> Iterator[Finding]:
    """Each cloud has rules for names; a bucket that breaks one can't be made.

    S3: 3 to 63 lower-case letters, digits, dots and hyphens, no IP address, none of AWS' own
    prefixes and endings. Google: the same with underscores, and without "google". Azure: an account
    of 3 to 24 lower-case letters and digits, then a container of 3 to 63 with single hyphens. OCI:
    up to 256 letters, digits, dots, hyphens and underscores. One that isn't made by gcluster may be
    older than its cloud's rules, so that is a warning.
    """
    for path, url, made in _named_buckets(context):
        scheme, _, rest = url.partition("://")
        facts = next((f for f in context.providers.values() if scheme in f.bucket_schemes), None)
        form = None if facts is None else facts.id_forms.get("bucket")
        name = "/".join(rest.split("/")[: 1 + (form is not None and "/" in form.example)])
        if form is None or re.fullmatch(form.pattern, name):
            continue
        yield Finding(
            summary=f"no bucket of {scheme}:// can be called {name}",
            path=path,
            severity=Severity.ERROR if made else Severity.WARNING,
            hint=f"write one such as {scheme}://{form.example}",
        )


def _named_buckets(context: CheckContext) -> Iterator[tuple[PathTuple, str, bool]]:
    """Yield (where, URL, whether it is made) of all buckets."""
    for name, storage in _buckets(context):
        yield ("storage", name, "bucket"), storage.bucket, storage.create
    for name, system in lustre(context):
        for key, url in (("import", system.import_from), ("export", system.export_to)):
            if url is not None:
                yield ("storage", name, key), url, False


@check("GC436", summary="Storages are copies of each other in a circle.")
def copy_cycle(context: CheckContext) -> Iterator[Finding]:
    """`copy_of` leads to the storage that holds the data first.

    In a circle none would: each waits for another's data.
    """
    edges = {
        name: [storage.copy_of] for name, storage in context.storage.items() if storage.copy_of
    }
    for circle in cycles(edges):
        paths: list[PathTuple] = [("storage", name, "copy_of") for name in circle]
        if len(circle) == 1:
            summary = f'storage "{circle[0]}" is a copy of itself'
        else:
            summary = f"storage is a copy in a circle: {' of '.join([*circle, circle[0]])}"
        yield Finding(
            summary=summary,
            path=paths[0],
            hint="leave copy_of out where the data is made",
            relies_on=tuple(paths),
        )


@check("GC437", summary="Data is to be staged, but from nowhere.")
def staging_source_missing(context: CheckContext) -> Iterator[Finding]:
    """`stage_within` says how long copying from `copy_of` may take, so it needs `copy_of`."""
    for name, storage in context.storage.items():
        if storage.stage_within is not None and storage.copy_of is None:
            path: PathTuple = ("storage", name, "stage_within")
            yield Finding(
                summary=f'storage "{name}" is to be staged, but is no copy of another',
                path=path,
                at_key=True,
                hint="add copy_of: the storage that has the data, or remove stage_within",
                relies_on=(path, ("storage", name, "copy_of")),
                fix=Remove(path) if len(context.storage) == 1 else None,
            )


@check("GC438", summary="Data is to be staged by nodes that don't see where it comes from.")
def staging_source_unreachable(context: CheckContext) -> Iterator[Finding]:
    """The nodes of a job copy what it needs: they mount the storage, and what it is a copy of.

    Where the origin is at another site, keep a copy in a bucket that both sites mount, and stage
    from that. A Lustre with `import` fetches from its bucket by itself.
    """
    for name, storage in context.storage.items():
        source = storage.copy_of
        if storage.stage_within is None or source not in context.storage:
            continue
        fetches = isinstance(storage, LustreStorage) and storage.import_from is not None
        if fetches or not context.mounts.are_certain:
            continue
        seen_by = frozenset(context.mounts.mounted_by(source))
        blind = [pool for pool in context.mounts.mounted_by(name) if pool not in seen_by]
        if not blind:
            continue
        path: PathTuple = ("storage", name, "copy_of")
        pools = ", ".join(f'"{pool}"' for pool in blind)
        yield Finding(
            summary=f'storage "{name}" is staged from "{source}", which pool {pools} does not mount'
            if len(blind) == 1
            else f'storage "{name}" is staged from "{source}", which pools {pools} do not mount',
            path=path,
            hint=f'let them mount "{source}" too, at a folder of its own, or name one in copy_of '
            "that they mount",
            relies_on=(path, ("storage",), ("pools", "*", "site")),
        )
