"""Buckets: of the cloud whose nodes read them, and made by a cloud that has such buckets."""

from __future__ import annotations

from collections.abc import Iterator

from ..diagnostics import PathTuple, Severity
from ..spec import ObjectStorage
from .context import CheckContext
from .lustre import lustre
from .registry import Finding, check


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
def bucket_of_another_cloud(context: CheckContext) -> Iterator[Finding]:
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


@check("GC432", summary="Managed Lustre imports from, or exports to, a bucket it can't reach.")
def lustre_bucket_of_another_cloud(context: CheckContext) -> Iterator[Finding]:
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


@check("GC433", summary="It is not said, or not possible, which cloud makes a bucket.")
def bucket_without_maker(context: CheckContext) -> Iterator[Finding]:
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
