"""Record of what was applied of an add-on: a ConfigMap in gcluster's namespace of the cluster.

So `up` on any machine can see what exists, renders nothing unchanged, and removes what an older
version had.
"""

from __future__ import annotations

import base64
import binascii
import gzip
from collections.abc import Iterable
from typing import Any

import msgspec

from ....inventory.compile.kubernetes_objects.objects import (
    CLUSTER_LABEL,
    DOMAIN,
    SYSTEM_NAMESPACE,
    Object,
    new,
)
from ....schemas.structure.decoding import decode_json
from ..kubectl import Kubectl
from ..objects import ObjectKey
from .ownership import AddonStopped

RECORD_LABEL = f"{DOMAIN}/addon-record"
"""On each record, with the add-on's name; records are no part of their add-on."""
APPLIED_FROM = f"{DOMAIN}/applied-from"
"""Annotation of the Secret that holds what was applied: hash of what it was rendered from."""
FIELDS = {
    "kind": "{.kind}",
    "addon": f"{{.metadata.labels.{RECORD_LABEL.replace('.', chr(92) + '.')}}}",
    "version": "{.data.version}",
    "content": "{.data.content}",
    "installed": "{.data.installed}",
    "kinds": "{.data.kinds}",
    "objects": "{.data.objects}",
    "applied": f"{{.metadata.annotations.{APPLIED_FROM.replace('.', chr(92) + '.')}}}",
}
"""A record in a list response, or its Secret, of which only `applied` counts."""


class Placed(msgspec.Struct, frozen=True, array_like=True):
    """An object of an add-on, as it was applied."""

    group: str
    kind: str
    namespace: str
    name: str
    fields: str = ""
    """Hash of the fields that are ours by the server's own book; "": not known."""

    @property
    def key(self) -> ObjectKey:
        """Its key."""
        return ObjectKey(self.group, self.kind, self.namespace, self.name)


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """One add-on as it was applied."""

    addon: str
    version: str
    content: str
    """Hash of what it was rendered from; "": that run was cut off, so all of it is to be done."""
    installed: bool
    """Whether it was there in full once: what comes next is an upgrade."""
    applied: str = ""
    """Hash of what the kept objects were rendered from (`addons.applied`); "": they are gone."""
    kinds: tuple[str, ...]
    """Of its objects, as kubectl names them: deployments.apps."""
    objects: tuple[Placed, ...]

    def to_object(self, cluster: str) -> Object:
        """Return it as the cluster keeps it."""
        return new(
            "v1",
            "ConfigMap",
            name_of(self.addon),
            namespace=SYSTEM_NAMESPACE,
            labels={CLUSTER_LABEL: cluster, RECORD_LABEL: self.addon},
            data={
                "version": self.version,
                "content": self.content,
                "installed": "yes" if self.installed else "",
                "kinds": ",".join(self.kinds),
                "objects": msgspec.json.encode(self.objects).decode(),
            },
        )


def name_of(addon: str) -> str:
    """Return the name of an add-on's record, and of its Secret."""
    return f"gcluster-addon-{addon}"


def records_of(rows: Iterable[dict[str, str]]) -> list[Record]:
    """Return the records, each with the content of its Secret."""
    found = list(rows)
    applied = {row["addon"]: row["applied"] for row in found if row["kind"] == "Secret"}
    return [
        record_of(row | {"applied": applied.get(row["addon"], "")})
        for row in found
        if row["kind"] == "ConfigMap"
    ]


def record_of(row: dict[str, str]) -> Record:
    """Return a record of a list; one that others overwrote counts as incomplete."""
    try:
        objects: tuple[Placed, ...] = decode_json(row["objects"] or "[]", tuple[Placed, ...])
        content = row["content"]
    except msgspec.DecodeError:
        objects, content = (), ""
    return Record(
        addon=row["addon"],
        version=row["version"],
        content=content,
        installed=row["installed"] == "yes",
        applied=row["applied"],
        kinds=tuple(kind for kind in row["kinds"].split(",") if kind),
        objects=objects,
    )


def selector(cluster: str) -> tuple[Any, ...]:
    """Return the kubectl arguments for all records of a cluster and their Secrets."""
    return (
        "configmaps,secrets",
        f"--namespace={SYSTEM_NAMESPACE}",
        f"--selector={CLUSTER_LABEL}={cluster},{RECORD_LABEL}",
    )


_KEY = "packed"
"""Of the Secret's data: the objects as JSON, by gzip."""
_MOST = 1024 * 1024
"""Bytes that a Secret holds (kubernetes.io/docs/concepts/configuration/secret, read 2026-11). Helm
keeps a release in one too, with its chart: what Helm installs fits."""


def applied_of(addon: str, cluster: str, content: str, objects: Iterable[Object]) -> Object:
    """Return the Secret that holds what is applied of an add-on.

    Args:
        addon: its name.
        cluster: for the label.
        content: hash of what it was rendered from, as in its record.
        objects: in the order of their application.

    Raises:
        AddonStopped: GC1062: it is larger than a Secret may be.
    """
    packed = gzip.compress(msgspec.json.encode(list(objects)), mtime=0)
    if len(packed) > _MOST:
        raise AddonStopped(
            "GC1062",
            f"add-on {addon} has {len(packed) / _MOST:.1f} MiB of objects, packed: a cluster keeps "
            "1 MiB of what was applied of one",
            hint="part it into several add-ons of a catalog file of your own",
        )
    return new(
        "v1",
        "Secret",
        name_of(addon),
        namespace=SYSTEM_NAMESPACE,
        labels={CLUSTER_LABEL: cluster, RECORD_LABEL: addon},
        annotations={APPLIED_FROM: content},
        type="Opaque",
        data={_KEY: base64.b64encode(packed).decode()},
    )


def read_applied(kubectl: Kubectl, addon: str) -> tuple[Object, ...]:
    """Return what was applied of an add-on, in order.

    Raises:
        AddonStopped: GC1070: it was overwritten by others.
        ApiSilent: no API server answers.
        ApiRefused: the API refused.
    """
    answer: Any = kubectl.get("secret", name_of(addon), f"--namespace={SYSTEM_NAMESPACE}")
    try:
        packed = base64.b64decode(answer["data"][_KEY], validate=True)
        return decode_json(gzip.decompress(packed), tuple[dict[str, Any], ...])
    except (KeyError, binascii.Error, OSError, EOFError, msgspec.DecodeError):
        raise AddonStopped(
            "GC1070",
            f"add-on {addon}: what was applied of it can't be read any more",
            hint=f"kubectl --namespace={SYSTEM_NAMESPACE} delete secret {name_of(addon)}; then "
            "gcluster up brings all of it again",
        ) from None
