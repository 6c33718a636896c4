"""Kubernetes objects as plain values, and the labels that say whose they are."""

from __future__ import annotations

import re
from typing import TypeAlias

from ..steps import Json

Object: TypeAlias = "dict[str, Json]"
"""One object: apiVersion, kind, metadata and what its kind has."""

DOMAIN = "gcluster.local"
"""Prefix of labels and resources that are gcluster's own."""
FIELD_MANAGER = "gcluster"
"""Name under which `up` applies on the server's side: the fields it set are its own."""
CLUSTER_LABEL = f"{DOMAIN}/cluster"
"""On every object: what carries it and is compiled no more may be pruned."""
MANAGED_BY = "app.kubernetes.io/managed-by"
SYSTEM_NAMESPACE = "gcluster-system"
"""Where gcluster's own jobs run."""

_NO_LABEL = re.compile(r"[^A-Za-z0-9_.-]")
_LONGEST_LABEL = 63


def new(
    api_version: str,
    kind: str,
    name: str,
    *,
    namespace: str | None = None,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    **parts: Json,
) -> Object:
    """Return an object with its metadata; `parts` are what stands beside them.

    Args:
        api_version: group and version.
        kind: as the API spells it.
        name: unique among its kind in its namespace.
        namespace: None where the kind has none.
        labels: beside those of ownership, which `owned` adds.
        annotations: none where empty.
        parts: spec, data, rules and so on; None: left out.
    """
    metadata: dict[str, Json] = {"name": name}
    if namespace is not None:
        metadata["namespace"] = namespace
    if labels:
        metadata["labels"] = dict(sorted(labels.items()))
    if annotations:
        metadata["annotations"] = dict(sorted(annotations.items()))
    given = {key: value for key, value in parts.items() if value is not None}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **given}


def owned(made: Object, cluster: str) -> Object:
    """Return the object with the labels that say which cluster's gcluster made it."""
    labels = made["metadata"].get("labels", {})
    marks = {CLUSTER_LABEL: cluster, MANAGED_BY: FIELD_MANAGER}
    metadata = made["metadata"] | {"labels": dict(sorted((labels | marks).items()))}
    return made | {"metadata": metadata}


def label_value(text: str) -> str:
    """Return text as a label's value may be: 63 letters, digits, dots, dashes at most."""
    return _NO_LABEL.sub("-", text)[:_LONGEST_LABEL].strip("-_.")
