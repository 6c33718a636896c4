"""Drift of Kubernetes: nodes out of service, objects and add-ons that `up` applied there.

Objects are compared by whether they exist and who wrote to them since: an object's managed fields
name who changed a field that `up` set, with the time. The compiled form is not compared: a newer
gcluster compiles differently, and that is a change for `plan`.

An add-on's records in the cluster have what was applied and which fields were ours, so nothing is
fetched or rendered to check it. It is restored from what was applied, one object and no other,
where that is still stored (`kubernetes.addons.applied`).
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import msgspec

from ....inventory.compile.kubernetes_objects.addons import chosen_addons
from ....inventory.compile.kubernetes_objects.objects import FIELD_MANAGER, Object
from ....schemas.structure.decoding import decode_json
from ...kubernetes.addons.changes import (
    OBJECT_FIELDS,
    addon_groups,
    has_addons,
    key_of_row,
    objects_selector,
)
from ...kubernetes.addons.ownership import fields_of, last_other
from ...kubernetes.addons.record import FIELDS, records_of
from ...kubernetes.addons.record import selector as of_records
from ...kubernetes.difference import Marks, difference
from ...kubernetes.kubectl import read_rows, row_template
from ...kubernetes.objects import DesiredObjects, ObjectKey, key_of
from ...kubernetes.observe import NODE_FIELDS, Live, LiveNode, NodeSeen, kinds, node_seen, selector
from ...scheduler.base import MARK
from .values import Drift, SchedulerFindings

_PART = "\x1d"
"""Group separator of ASCII, after each answer: two, and two more where there are add-ons."""
_WITH_ADDONS = 4
_ON_A_CONTROL_PLANE = "--kubeconfig=/etc/kubernetes/admin.conf"
_KUBECTL = f"kubectl {_ON_A_CONTROL_PLANE} --request-timeout=20s"
_NODES = NODE_FIELDS | {"labels": "{.metadata.labels}", "taints": "{.spec.taints}"}
_OBJECTS = {
    "api": "{.apiVersion}",
    "kind": "{.kind}",
    "namespace": "{.metadata.namespace}",
    "name": "{.metadata.name}",
    "writers": "{.metadata.managedFields}",
}


class _Writer(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of an object's managedFields."""

    manager: str = ""
    subresource: str = ""
    time: str = ""
    fields: dict[str, Any] = msgspec.field(name="fieldsV1", default_factory=dict)


class KubernetesDrift:
    """Nodes with why they are out and since when; objects and labels that are not as applied."""

    name = "kubernetes"

    def __init__(self, cluster: str, found: DesiredObjects, hosts: Collection[str]) -> None:
        """Hold what there is to be.

        Args:
            cluster: its name, for the commands of the hints.
            found: what was compiled for it.
            hosts: names of all its hosts.
        """
        self._cluster = cluster
        self._wanted = found
        self._hosts = frozenset(hosts)
        self._addons = [one.addon.name for one in chosen_addons(found.facts)]
        requested, more, addons = ",".join(kinds(found.facts.release)), "more=", ""
        if has_addons(found.facts):
            more = more_kinds(_KUBECTL, addon_groups(found.facts))
            addons = f" && {shell_command(_KUBECTL, cluster)}"
        of = f'"{requested}$more" --all-namespaces {shlex.quote(selector(cluster))}'
        self.words = (
            f"{_KUBECTL} get nodes {_rows_of(_NODES)} && printf '\\035' && {more} &&"
            f" {_KUBECTL} get {of} {_rows_of(_OBJECTS)} && printf '\\035\\n'{addons}"
        )

    def local_command(self, kubeconfig: str) -> str:
        """Return the shell lines for a machine with its own kubeconfig for the API."""
        way = f"--kubeconfig={shlex.quote(kubeconfig)}"
        return self.words.replace(_ON_A_CONTROL_PLANE, way)

    def judge(
        self, printed: Mapping[str, str], nodes: Mapping[str, Collection[str]]
    ) -> SchedulerFindings:
        """Return nodes that take no pods or are unknown, and objects and labels that differ."""
        whole = (text.split(_PART) for text in printed.values() if text.count(_PART) > 1)
        parts = next(whole, None)
        if parts is None:
            return SchedulerFindings(problem="no API server answers")
        rows = {row["name"]: row for row in read_rows(parts[0], list(_NODES))}
        found = read_rows(parts[1], list(_OBJECTS))
        seen = {name: node_seen(row) for name, row in rows.items()}
        drifts = [
            drift
            for node, steps in nodes.items()
            if (drift := self._of_node(node, seen.get(node), tuple(steps)))
        ]
        live = Live(
            objects={_key(row): "" for row in found},
            nodes={name: _live_node(row, ready=seen[name].ready) for name, row in rows.items()},
        )
        differs = difference(self._wanted, live, self._hosts)
        drifts += [_missing(key) for key in differs.missing]
        drifts += [_labels(node, marks) for node, marks in differs.marks.items() if node in nodes]
        drifts += [
            drift
            for row in found
            if _key(row) in self._wanted.objects
            for drift in _written(_key(row), self._wanted.objects[_key(row)], row["writers"])
        ]
        if len(parts) > _WITH_ADDONS:
            drifts += judge(parts[2].removeprefix("\n"), parts[3], self._addons)
        return SchedulerFindings(drifts=tuple(drifts))

    def _of_node(self, node: str, seen: NodeSeen | None, steps: tuple[str, ...]) -> Drift | None:
        if seen is None:
            return _of_node(
                node,
                was="known",
                now="the scheduler does not know it",
                hint="on the node: systemctl restart kubelet; then gcluster up",
            )
        if not seen.out:
            return None
        if not seen.cordoned:
            drift = _of_node(node, now=seen.why, when=seen.not_ready_since)
            return msgspec.structs.replace(drift, steps=steps, fixable=True)
        now = "cordoned" if seen.ready else "not ready, cordoned"
        why = seen.reason or seen.unfit
        return _of_node(
            node,
            now=f"{now}: {why}" if why else now,
            when=seen.since or seen.not_ready_since,
            hint=self._hint(node, seen.reason),
        )

    def _hint(self, node: str, reason: str) -> str:
        if reason.startswith(MARK):
            return "gcluster up goes on with it"
        verb = "repair" if reason.startswith("gcluster-health") else "resume"
        return f"gcluster {verb} {self._cluster} {node}"


def _key(row: Mapping[str, str]) -> ObjectKey:
    metadata = {"namespace": row["namespace"], "name": row["name"]}
    return key_of({"apiVersion": row["api"], "kind": row["kind"], "metadata": metadata})


def _live_node(row: Mapping[str, str], *, ready: bool) -> LiveNode:
    return LiveNode(
        labels=decode_json(row["labels"] or "{}", dict[str, str]),
        taints=tuple(decode_json(row["taints"] or "[]", list[dict[str, str]])),
        ready=ready,
    )


def _of_node(
    node: str, *, was: str = "in service", now: str, when: str = "", hint: str = ""
) -> Drift:
    return Drift(
        plane="scheduler",
        where=node,
        kind="state",
        name=node,
        was=was,
        now=now,
        when=when,
        hint=hint,
    )


def _missing(key: ObjectKey) -> Drift:
    return Drift(
        plane="scheduler",
        where=key.kind,
        kind="object",
        name=key.words,
        was="applied",
        now="not there",
        fixable=True,
    )


def _labels(node: str, marks: Marks) -> Drift:
    lost = [f"{name}={value}" for name, value in marks.labels.items() if value is not None]
    more = [name for name, value in marks.labels.items() if value is None]
    lost += [taint for taint in marks.taints if not taint.endswith("-")]
    more += [taint.removesuffix("-") for taint in marks.taints if taint.endswith("-")]
    differences = [f"without {', '.join(lost)}"] * bool(lost) + [f"with {', '.join(more)}"] * bool(
        more
    )
    return Drift(
        plane="scheduler",
        where=node,
        kind="label",
        name=node,
        was="as compiled",
        now="; ".join(differences),
        fixable=True,
    )


def _written(key: ObjectKey, made: Object, writers: str) -> Iterator[Drift]:
    """Yield field managers that took over a field of `up`; fields that others added are theirs.

    A manager that sets another value owns the field from then on, by server-side apply
    (https://kubernetes.io/docs/reference/using-api/server-side-apply/, 2026-11).
    """
    for writer in decode_json(writers or "[]", list[_Writer]):
        if writer.subresource or writer.manager == FIELD_MANAGER:
            continue
        if _touches(writer.fields, made):
            yield Drift(
                plane="scheduler",
                where=key.kind,
                kind="object",
                name=key.words,
                was="as applied",
                now="changed",
                when=writer.time,
                who=writer.manager,
                fixable=True,
            )


def _touches(fields: Mapping[str, Any], made: Any) -> bool:
    """Whether one of the fields of a FieldsV1 is set in an object; items of lists count as such."""
    for name, below in fields.items():
        key = name.removeprefix("f:")
        if not isinstance(made, dict):
            return True
        if key in made and (not below or _touches(below, made[key])):
            return True
    return False


_FIELDS = OBJECT_FIELDS | {"writers": "{.metadata.managedFields}"}
WHOLE = "gcluster up brings all of its add-on again"
_SERVED = "--verbs=list,delete --output=name"


def more_kinds(kubectl: str, groups: Collection[str]) -> str:
    """Return shell lines that set `more` to the kinds of the server's API groups, or ""."""
    pattern = "|".join(sorted(group.replace(".", r"\.") for group in groups))
    found = f"{kubectl} api-resources {_SERVED} | grep -E {shlex.quote(f'[.]({pattern})$')}"
    return f"more=$({found} | sed 's/^/,/' | tr -d '\\n')"


def shell_command(kubectl: str, cluster: str) -> str:
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
        fixable = record.applied == record.content
        hint = "" if fixable else WHOLE
        if record.content and not fixable:
            yield _drift("add-on", record.addon, "what was applied is lost", hint=hint)
        for placed in record.objects if record.content else ():
            writers, name = there.get((record.addon, placed.key)), placed.key.words
            if writers is None:
                yield _drift(placed.kind, name, "not there", hint=hint, fixable=fixable)
            elif placed.fields and fields_of(writers) != placed.fields:
                by = last_other(writers)
                yield _drift(placed.kind, name, "changed", by=by, hint=hint, fixable=fixable)


def _drift(
    where: str,
    name: str,
    now: str,
    *,
    by: tuple[str, str] = ("", ""),
    hint: str = "",
    fixable: bool = False,
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
        fixable=fixable,
    )


def _rows_of(fields: Mapping[str, str]) -> str:
    return shlex.quote(f"--output=jsonpath={row_template(list(fields.values()))}")
