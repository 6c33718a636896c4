"""Add-ons, as far as drift is about them: objects that somebody deleted or wrote to since.

Their records in the cluster say what was applied and which fields were ours, so nothing is fetched
or rendered to see it. It is put back from what was applied, one object and no other, where that is
still kept (`kubernetes.addons.applied`).
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping

from ..kubernetes.addons.record import FIELDS, records_of
from ..kubernetes.addons.record import selector as of_records
from ..kubernetes.addons.standing import (
    OBJECT_FIELDS,
    key_of_row,
    objects_selector,
)
from ..kubernetes.addons.taken import fields_of, last_other
from ..kubernetes.objects import ObjectKey
from ..kubernetes.table import read_rows, row_template
from .values import Drift

_FIELDS = OBJECT_FIELDS | {"writers": "{.metadata.managedFields}"}
WHOLE = "gcluster up brings all of its add-on anew"
_SERVED = "--verbs=list,delete --output=name"


def more_kinds(kubectl: str, groups: Collection[str]) -> str:
    """Return shell words that set `more` to the kinds of API groups that the server has, or ""."""
    pattern = "|".join(sorted(group.replace(".", r"\.") for group in groups))
    found = f"{kubectl} api-resources {_SERVED} | grep -E {shlex.quote(f'[.]({pattern})$')}"
    return f"more=$({found} | sed 's/^/,/' | tr -d '\\n')"


def words(kubectl: str, cluster: str) -> str:
    """Return what a controller's shell runs: records, and the objects that they name.

    Args:
        kubectl: with its options, as the shell takes it.
        cluster: its name.
    """
    part = "printf '\\035'"
    records = f"{kubectl} get {shlex.join(of_records(cluster))}"
    named = f"{records} --output=jsonpath='{{range .items[*]}}{{.data.kinds}},{{end}}'"
    served = f"$({kubectl} api-resources {_SERVED})"
    kinds = f"{named} | tr , '\\n' | sort -u | grep -Fx -e \"{served}\" | paste -sd, -"
    objects = f"{kubectl} get $kinds --all-namespaces --show-managed-fields"
    return (
        f"{records} {_rows_of(FIELDS)} && {part} && kinds=$({kinds}) &&"
        f' if [ -n "$kinds" ]; then'
        f" {objects} {shlex.quote(objects_selector(cluster))} {_rows_of(_FIELDS)}; fi && {part}"
    )


def judge(records: str, objects: str, addons: Collection[str]) -> Iterator[Drift]:
    """Yield what differs from the records (pure).

    Args:
        records: what was printed of them.
        objects: what was printed of the objects.
        addons: those that the cluster is to have.
    """
    known = records_of(read_rows(records, list(FIELDS)))
    there: Mapping[tuple[str, ObjectKey], str] = {
        (row["addon"], key_of_row(row)): row["writers"] for row in read_rows(objects, list(_FIELDS))
    }
    for name in sorted(set(addons) - {record.addon for record in known}):
        yield _drift("add-on", name, "not there", hint="gcluster up brings it")
    for record in known:
        mends = record.applied == record.content
        hint = "" if mends else WHOLE
        if record.content and not mends:
            yield _drift("add-on", record.addon, "what was applied is lost", hint=hint)
        for placed in record.objects if record.content else ():
            writers, name = there.get((record.addon, placed.key)), placed.key.words
            if writers is None:
                yield _drift(placed.kind, name, "not there", hint=hint, mends=mends)
            elif placed.fields and fields_of(writers) != placed.fields:
                by = last_other(writers)
                yield _drift(placed.kind, name, "changed", by=by, hint=hint, mends=mends)


def _drift(
    where: str,
    name: str,
    now: str,
    *,
    by: tuple[str, str] = ("", ""),
    hint: str = "",
    mends: bool = False,
) -> Drift:
    was = "as applied" if now == "changed" else "applied"
    who, when = by
    return Drift(
        plane="scheduler",
        where=where,
        kind="object",
        name=name,
        was=was,
        now=now,
        who=who,
        when=when,
        hint=hint,
        mends=mends,
    )


def _rows_of(fields: Mapping[str, str]) -> str:
    return shlex.quote(f"--output=jsonpath={row_template(list(fields.values()))}")
