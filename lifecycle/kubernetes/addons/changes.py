"""Which add-ons to install, change and remove: the wanted ones compared with the cluster's."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping

import msgspec

from ....inventory.compile.kubernetes_objects.addons import ChosenAddon, chosen_addons
from ....inventory.compile.kubernetes_objects.facts import KubernetesFacts
from ....inventory.compile.kubernetes_objects.objects import CLUSTER_LABEL
from ....schemas.diagnostics import Diagnostic
from ...cluster.outcome import LifecycleError
from ..kubectl import Kubectl, rows
from ..objects import ObjectKey
from ..release.source import takes_own_build
from .helm import find_helm
from .ownership import ApiResources, fields_of, read_api_resources
from .record import FIELDS, Record, records_of
from .record import selector as of_records
from .rendering import ADDON_LABEL

_APPLIED_AS = 1
"""Counts up when an add-on's objects are applied otherwise than before."""
OBJECT_FIELDS = {
    "api": "{.apiVersion}",
    "kind": "{.kind}",
    "namespace": "{.metadata.namespace}",
    "name": "{.metadata.name}",
    "addon": f"{{.metadata.labels.{ADDON_LABEL.replace('.', chr(92) + '.')}}}",
}
"""An add-on's object in a row."""
_NAMED = 3


class DesiredAddon(msgspec.Struct, frozen=True, kw_only=True):
    """An add-on that the cluster is to have."""

    chosen: ChosenAddon
    content: str
    """Hash of all that it is rendered from."""


class AddonChanges(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be done about add-ons."""

    added: tuple[str, ...] = ()
    changed: dict[str, str] = {}
    """Add-on -> description of what changes; all of these are rendered and applied whole."""
    lost: dict[str, tuple[ObjectKey, ...]] = {}
    """Add-on -> its objects that were deleted by others."""
    taken: dict[str, tuple[ObjectKey, ...]] = {}
    """Add-on -> its objects with a field changed by others; {} where that wasn't checked."""
    gone: tuple[str, ...] = ()
    """Installed, and wanted no more; the last applied goes first."""
    wanted: tuple[DesiredAddon, ...] = ()
    records: dict[str, Record] = {}

    @property
    def pending(self) -> tuple[DesiredAddon, ...]:
        """Add-ons of which something is applied, in order."""
        names = {*self.added, *self.changed, *self.lost, *self.taken}
        return tuple(one for one in self.wanted if one.chosen.addon.name in names)

    @property
    def rendered(self) -> tuple[DesiredAddon, ...]:
        """Those of them that are rendered and applied whole; of others single objects are."""
        names = {*self.added, *self.changed}
        return tuple(one for one in self.pending if one.chosen.addon.name in names)

    def put_back(self, addon: str) -> tuple[ObjectKey, ...]:
        """Return the objects of an add-on that are put back from what was applied of it."""
        return (*self.lost.get(addon, ()), *self.taken.get(addon, ()))

    def only_put_back(self) -> AddonChanges:
        """Return the part that neither adds, changes nor removes an add-on."""
        return msgspec.structs.replace(self, added=(), changed={}, gone=())

    def lines(self) -> tuple[str, ...]:
        """Return the text of it."""
        versions = {one.chosen.addon.name: one.chosen.addon.version for one in self.wanted}
        return (
            *(f"add add-on {name} {versions[name]}" for name in self.added),
            *(f"change add-on {name}: {what}" for name, what in self.changed.items()),
            *(f"put back of add-on {name}: {_few(keys)}" for name, keys in self.lost.items()),
            *(
                f"remove add-on {name}: {len(self.records[name].objects)} objects"
                for name in self.gone
            ),
        )


def desired_addons(facts: KubernetesFacts) -> tuple[DesiredAddon, ...]:
    """Return the add-ons of a cluster in the order in which they are applied."""
    return tuple(
        DesiredAddon(chosen=one, content=_content(one, facts)) for one in chosen_addons(facts)
    )


def addon_changes(
    wanted: tuple[DesiredAddon, ...],
    records: Mapping[str, Record],
    there: Collection[tuple[str, ObjectKey]],
    fields: Mapping[tuple[str, ObjectKey], str] | None = None,
) -> AddonChanges:
    """Compare (pure).

    Args:
        wanted: the add-ons that the cluster should have.
        records: add-on -> what was applied of it.
        there: add-on and key of each existing object.
        fields: the same -> hash of the fields that we own; None: not checked.
    """
    known, found = set(there), fields or {}
    names = {one.chosen.addon.name for one in wanted}
    added, changed, lost, taken = [], {}, {}, {}
    for one in wanted:
        addon = one.chosen.addon
        record = records.get(addon.name)
        if record is None:
            added.append(addon.name)
        elif not record.content == record.applied == one.content:
            changed[addon.name] = _change(record, one)
        else:
            at = {(addon.name, placed.key): placed for placed in record.objects}
            if away := tuple(p.key for where, p in at.items() if where not in known):
                lost[addon.name] = away
            if others := tuple(
                p.key for where, p in at.items() if found.get(where, p.fields) != p.fields
            ):
                taken[addon.name] = others
    return AddonChanges(
        added=tuple(added),
        changed=changed,
        lost=lost,
        taken=taken,
        gone=tuple(sorted((name for name in records if name not in names), reverse=True)),
        wanted=wanted,
        records=dict(records),
    )


def read_addon_changes(
    kubectl: Kubectl, facts: KubernetesFacts, resources: ApiResources, *, thorough: bool = False
) -> AddonChanges:
    """Query the add-ons' objects, and compare: two calls at most.

    `thorough` also checks each object's field managers, which is a larger response.

    Raises:
        ApiSilent: no API server answers.
        ApiRefused: the API refused.
    """
    cluster = facts.spec.name
    found = rows(kubectl, *of_records(cluster), fields=FIELDS)
    records = {record.addon: record for record in records_of(found)}
    have = {name for name, _ in resources.kinds.values()}
    kinds = sorted({kind for record in records.values() for kind in record.kinds} & have)
    wanted = desired_addons(facts)
    if not thorough:
        return addon_changes(wanted, records, read_live_objects(kubectl, cluster, kinds))
    fields = {at: fields_of(text) for at, text in read_writers(kubectl, cluster, kinds).items()}
    return addon_changes(wanted, records, fields.keys(), fields)


def read_live_objects(
    kubectl: Kubectl, cluster: str, kinds: Collection[str]
) -> frozenset[tuple[str, ObjectKey]]:
    """Return add-on and key of each object of add-ons, of these kinds."""
    if not kinds:
        return frozenset()
    of = (",".join(kinds), "--all-namespaces", objects_selector(cluster))
    found = rows(kubectl, *of, fields=OBJECT_FIELDS)
    return frozenset((row["addon"], key_of_row(row)) for row in found)


def read_writers(
    kubectl: Kubectl, cluster: str, kinds: Collection[str]
) -> dict[tuple[str, ObjectKey], str]:
    """Return add-on and key -> the managedFields of each object of add-ons, of these kinds."""
    if not kinds:
        return {}
    of = (",".join(kinds), "--all-namespaces", "--show-managed-fields", objects_selector(cluster))
    fields = OBJECT_FIELDS | {"writers": "{.metadata.managedFields}"}
    found = rows(kubectl, *of, fields=fields)
    return {(row["addon"], key_of_row(row)): row["writers"] for row in found}


def objects_selector(cluster: str) -> str:
    """Return kubectl's option for all objects of a cluster's add-ons."""
    return f"--selector={CLUSTER_LABEL}={cluster},{ADDON_LABEL}"


def key_of_row(row: Mapping[str, str]) -> ObjectKey:
    """Return the key of an object that came as a row."""
    return ObjectKey(row["api"].rpartition("/")[0], row["kind"], row["namespace"], row["name"])


def _content(one: ChosenAddon, facts: KubernetesFacts) -> str:
    addon = one.addon
    parts = [
        _APPLIED_AS,
        facts.spec.name,
        facts.release,
        [addon.name, addon.kind, addon.digest, addon.namespace, dict(sorted(addon.images.items()))],
        one.values,
    ]
    return hashlib.sha256(msgspec.json.encode(parts, order="sorted")).hexdigest()[:32]


def _change(record: Record, one: DesiredAddon) -> str:
    version = one.chosen.addon.version
    if not record.content:
        return f"{version}, which was cut off"
    if record.version != version:
        return f"{record.version} -> {version}"
    return "its values or images" if record.content != one.content else "what was applied is lost"


def _few(keys: tuple[ObjectKey, ...]) -> str:
    named = ", ".join(f"{key.kind} {key.words}" for key in keys[:_NAMED])
    return named + (f" and {len(keys) - _NAMED} more" if len(keys) > _NAMED else "")


NETWORKS = frozenset({"cilium", "tigera-operator"})
"""Add-ons that are a pod network: no node is ready before one of them runs."""


def has_addons(facts: KubernetesFacts) -> bool:
    """Whether a cluster may have add-ons: nodes made here get none."""
    return not takes_own_build(facts.spec)


def moves_network(found: AddonChanges) -> bool:
    """Whether the pod network is an add-on that comes or changes."""
    return not NETWORKS.isdisjoint({*found.added, *found.changed})


def addon_groups(facts: KubernetesFacts) -> set[str]:
    """Return the API groups that add-ons bring."""
    return {group for addon in facts.catalog.addons.values() for group in addon.kinds}


def observe_addons(
    kubectl: Kubectl, facts: KubernetesFacts, *, thorough: bool = False
) -> tuple[AddonChanges, list[str]]:
    """Return the state of the add-ons, and those of their kinds of which gcluster compiles objects.

    Raises:
        ApiSilent: no API server answers.
        ApiRefused: the API refused.
    """
    if not has_addons(facts):
        return AddonChanges(), []
    resources = read_api_resources(kubectl)
    kinds = resources.of_groups(addon_groups(facts))
    return read_addon_changes(kubectl, facts, resources, thorough=thorough), kinds


def fresh(facts: KubernetesFacts) -> AddonChanges:
    """Return what is to be done where there is nothing yet (pure)."""
    return addon_changes(desired_addons(facts), {}, ()) if has_addons(facts) else AddonChanges()


def without_a_program(found: AddonChanges) -> tuple[Diagnostic, ...]:
    """Return why what comes can't be rendered on this machine; () where it can."""
    if not any(one.chosen.addon.kind == "helm" for one in found.rendered):
        return ()
    try:
        find_helm()
    except LifecycleError as error:
        return error.diagnostics
    return ()
