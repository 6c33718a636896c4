"""Applies the wanted add-ons one after the other; safe to repeat and to kill.

It is independent of where kubectl runs. An add-on's new objects are in its record before they are
applied, so that an interrupted run is detected, continued and cleaned up.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

from msgspec.structs import replace

from ....inventory.compile.kubernetes_objects.facts import KubernetesFacts
from ....inventory.compile.kubernetes_objects.objects import Object
from ....schemas.diagnostics import Diagnostic
from ...cluster.outcome import LifecycleError
from ...cluster.progress import Reporter, StageProgress
from ...operations.rolling.roll import Clock
from ..kubectl import ApiRefused, Kubectl
from ..objects import ObjectKey, key_of
from .artefact import artefact
from .changes import AddonChanges, DesiredAddon, read_writers
from .notes import (
    notes_of,
    remaining_data,
    remaining_definitions,
    remaining_namespaces,
)
from .ownership import (
    AddonStopped,
    ApiResources,
    apply,
    delete,
    establish,
    fields_of,
    read_api_resources,
)
from .prune import prune, refuse_unmanaged
from .record import Placed, Record, applied_of, read_applied
from .rendering import ROLLS_OUT, Event, Rendered, rendered
from .waiting import ended, nodes_ready, rolled_out

ROLLOUT_S = 300
"""How long one add-on's workloads are waited for, how long a job of a hook, and nodes."""
_WEBHOOK_S = 60


class AddonsStep:
    """The add-ons of one cluster."""

    def __init__(
        self,
        kubectl: Kubectl,
        facts: KubernetesFacts,
        compiled: Collection[ObjectKey],
        report: Reporter,
        *,
        clock: Clock | None = None,
        limit_s: float = ROLLOUT_S,
    ) -> None:
        """Set the API and the wanted add-ons; nothing is contacted.

        Args:
            kubectl: the cluster's API.
            facts: the cluster.
            compiled: objects that gcluster creates itself, which no add-on's own version replaces.
            report: receives an event for each add-on.
            clock: time source.
            limit_s: how long to wait for the workloads of an add-on, in seconds.
        """
        self._kubectl = kubectl
        self._facts = facts
        self._cluster = facts.spec.name
        self._compiled = frozenset(compiled)
        self._report = report
        self._clock = clock or Clock()
        self._limit_s = limit_s

    def bring(self, existing: AddonChanges) -> tuple[Diagnostic, ...]:
        """Apply pending add-ons in order, until one fails; return the notes.

        Raises:
            ApiSilent: no API server answers.
            ApiRefused: it refused a query.
        """
        diagnostics: list[Diagnostic] = []
        pending = existing.pending
        for done, one in enumerate(pending):
            name = one.chosen.addon.name
            total, detail = len(pending), f"add-on {name}"
            self._report(StageProgress(name="objects", done=done, total=total, detail=detail))
            try:
                if one in existing.rendered:
                    diagnostics += self._bring(one, existing.records.get(name))
                else:
                    diagnostics += self._put_back(existing.records[name], existing.put_back(name))
            except AddonStopped as stopped:
                return (*diagnostics, stopped.diagnostic)
            except LifecycleError as error:
                return (*diagnostics, *error.diagnostics)
        return tuple(diagnostics)

    def remove(self, existing: AddonChanges) -> tuple[Diagnostic, ...]:
        """Remove add-ons that are no longer wanted, the last applied first; return what is kept.

        Raises:
            ApiSilent: no API server answers.
            ApiRefused: the API refused.
        """
        diagnostics: list[Diagnostic] = []
        resources = read_api_resources(self._kubectl) if existing.gone else None
        for name in existing.gone:
            assert resources is not None  # noqa: S101  # there is one that goes
            record = existing.records[name]
            keys = [placed.key for placed in record.objects]
            done = prune(self._kubectl, self._cluster, name, keys, resources)
            diagnostics += (
                *remaining_definitions(done.definitions),
                *remaining_data(name, done.data),
            )
            diagnostics += remaining_namespaces(
                {key.name: work for key, work in done.namespaces.items()}
            )
            delete(self._kubectl, [key_of(applied_of(name, self._cluster, "", ()))], resources)
            if done.kept:
                left = tuple(placed for placed in record.objects if placed.key in done.kept)
                self._write(replace(record, content="", objects=left))
            else:
                delete(self._kubectl, [key_of(record.to_object(self._cluster))], resources)
        return tuple(diagnostics)

    def await_nodes(self, names: Collection[str]) -> tuple[Diagnostic, ...]:
        """Wait until nodes are ready, which they are by the pod network; return which aren't.

        Raises:
            ApiSilent: no API server answers.
        """
        return nodes_ready(self._kubectl, names, self._limit_s, self._clock)

    def retried(self, work: Callable[[], None]) -> None:
        """Repeat a call that fails because an add-on's webhook isn't listening yet.

        Raises:
            ApiSilent: no API server answers.
            ApiRefused: it refused for another reason, or until the time limit.
        """
        until = self._clock.now() + _WEBHOOK_S
        while True:
            try:
                work()
            except ApiRefused as refused:
                if "failed calling webhook" not in refused.words or self._clock.now() >= until:
                    raise
                self._clock.sleep(2)
            else:
                return

    def _bring(self, one: DesiredAddon, before: Record | None) -> Iterator[Diagnostic]:
        """Bring one whole, with its hooks."""
        addon, facts = one.chosen.addon, self._facts
        made = rendered(one.chosen, artefact(addon), facts.spec.name, facts.release, self._compiled)
        record = _began(one, before)
        resources = read_api_resources(self._kubectl)
        self._refuse_others(made, record, addon.namespace, resources)
        if made.definitions:
            self._record(record, made.definitions, resources)
            establish(self._kubectl, made.definitions, addon.name)
            resources = read_api_resources(self._kubectl)
        _refuse_missing_kinds(made, resources, addon.name)

        def placed(objects: Iterable[Object]) -> list[Object]:
            return [resources.placed(each, addon.namespace) for each in objects]

        first = placed((*made.namespaces, *made.hooks.hook_objects("pre")))
        own, last = placed(made.objects), placed(made.hooks.hook_objects("post"))
        every = (*made.definitions, *first, *own, *last)
        kept = applied_of(addon.name, self._cluster, one.content, every)
        jobs = placed(hook.made for hook in made.hooks.hooks if hook.runs)
        self._record(record, (*every, *jobs), resources)  # one that fails goes with the add-on
        event: Event = "upgrade" if record.installed else "install"
        apply(self._kubectl, first, addon.name)
        self._run(placed(made.hooks.jobs("pre", event)), resources, addon.name)
        apply(self._kubectl, own, addon.name)
        workloads = placed(made.workloads)
        yield from rolled_out(self._kubectl, workloads, addon.name, self._limit_s, self._clock)
        apply(self._kubectl, last, addon.name)
        self._run(placed(made.hooks.jobs("post", event)), resources, addon.name)
        now = {key_of(each) for each in every}
        old = [each.key for each in record.objects if each.key not in now]
        done = prune(self._kubectl, self._cluster, addon.name, old, resources)
        yield from remaining_definitions(done.definitions)
        yield from remaining_data(addon.name, done.data)
        apply(self._kubectl, [kept], addon.name)
        self._finish(record, one.content, [*done.kept, *now], resources)
        yield from notes_of(addon.name, made)

    def _put_back(self, record: Record, keys: Collection[ObjectKey]) -> Iterator[Diagnostic]:
        """Apply these objects alone, as they were applied; hooks don't run."""
        applied = read_applied(self._kubectl, record.addon)
        again = [made for made in applied if key_of(made) in keys]
        crds = [made for made in again if made["kind"] == "CustomResourceDefinition"]
        establish(self._kubectl, crds, record.addon)
        apply(self._kubectl, [made for made in again if made not in crds], record.addon)
        workloads = [made for made in again if made["kind"] in ROLLS_OUT]
        yield from rolled_out(self._kubectl, workloads, record.addon, self._limit_s, self._clock)
        fields = self._fields(record.addon, keys, read_api_resources(self._kubectl))
        objects = [
            replace(placed, fields=fields.get(placed.key, "")) if placed.key in keys else placed
            for placed in record.objects
            if placed.key not in keys or placed.key in fields
        ]
        self._write(replace(record, objects=tuple(objects)))

    def _refuse_others(
        self, made: Rendered, record: Record, namespace: str, resources: ApiResources
    ) -> None:
        """Refuse to take over what others made, before anything is written or applied."""
        every = (*made.definitions, *made.namespaces, *made.objects)
        hooks = (hook.made for hook in made.hooks.hooks)
        objects = [resources.placed(each, namespace) for each in (*every, *hooks)]
        refuse_unmanaged(self._kubectl, self._cluster, record, objects, resources)

    def _run(self, jobs: Iterable[Object], resources: ApiResources, addon: str) -> None:
        """Run jobs of hooks one after the other; each is recreated, and removed when it is done."""
        for job in jobs:
            delete(self._kubectl, [key_of(job)], resources, wait=True)
            apply(self._kubectl, [job], addon)
            ended(self._kubectl, job, addon, self._limit_s, self._clock)
            delete(self._kubectl, [key_of(job)], resources)

    def _record(self, record: Record, objects: Iterable[Object], resources: ApiResources) -> None:
        """Record the objects that will be applied, in addition to the existing ones."""
        known = {placed.key: placed for placed in record.objects}
        for made in objects:
            known.setdefault(key_of(made), Placed(*key_of(made)))
        self._write(_with(record, known.values(), resources))

    def _finish(
        self, record: Record, content: str, keys: Collection[ObjectKey], resources: ApiResources
    ) -> None:
        """Write down what is there now, in the order of application, and whose fields are ours."""
        fields = self._fields(record.addon, keys, resources)
        objects = [Placed(*key, fields=fields.get(key, "")) for key in dict.fromkeys(keys)]
        self._write(replace(_with(record, objects, resources), content=content, installed=True))

    def _fields(
        self, addon: str, keys: Collection[ObjectKey], resources: ApiResources
    ) -> dict[ObjectKey, str]:
        """Return key -> hash of the fields that are ours, of the objects that are there."""
        kinds = sorted({resources.name_of(key.group, key.kind) for key in keys} - {""})
        writers = read_writers(self._kubectl, self._cluster, kinds)
        return {
            key: fields_of(text)
            for (owner, key), text in writers.items()
            if owner == addon and key in keys
        }

    def _write(self, record: Record) -> None:
        apply(self._kubectl, [record.to_object(self._cluster)], record.addon)


def _began(one: DesiredAddon, before: Record | None) -> Record:
    """Return the record of an add-on that isn't whole yet."""
    addon = one.chosen.addon
    return Record(
        addon=addon.name,
        version=addon.version,
        content="",
        installed=before is not None and before.installed,
        kinds=() if before is None else before.kinds,
        objects=() if before is None else before.objects,
    )


def _with(record: Record, objects: Iterable[Placed], resources: ApiResources) -> Record:
    found = tuple(objects)
    named = {resources.name_of(placed.group, placed.kind) for placed in found}
    return replace(record, objects=found, kinds=tuple(sorted(named - {""})))


def _refuse_missing_kinds(made: Rendered, resources: ApiResources, addon: str) -> None:
    """Refuse objects of kinds that nothing defines, before the first one is applied."""
    kinds = {
        (str(each["apiVersion"]).rpartition("/")[0], str(each["kind"]))
        for each in (*made.objects, *(hook.made for hook in made.hooks.hooks))
    }
    unknown = sorted(
        f"{kind}.{group}" for group, kind in kinds if not resources.name_of(group, kind)
    )
    if unknown:
        raise AddonStopped(
            "GC1064",
            f"add-on {addon} has objects of kinds that the cluster doesn't: {', '.join(unknown)}",
            hint="name the add-on that brings them under scheduler.addons, or say it with values",
        )
