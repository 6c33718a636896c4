"""Kubernetes objects as plain values, and their ownership labels."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import yaml

from ....schemas.derived.control_planes import has
from ..steps import Json
from .facts import KubernetesFacts

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
    """Return an object with its metadata; `parts` are its other fields.

    Args:
        api_version: group and version.
        kind: as the API spells it.
        name: unique among its kind in its namespace.
        namespace: None where the kind has none.
        labels: except those of ownership, which `owned` adds.
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
    """Return the object with the labels of the owning cluster."""
    labels = made["metadata"].get("labels", {})
    marks = {CLUSTER_LABEL: cluster, MANAGED_BY: FIELD_MANAGER}
    metadata = made["metadata"] | {"labels": dict(sorted((labels | marks).items()))}
    return made | {"metadata": metadata}


def label_value(text: str) -> str:
    """Return text as a label's value may be: 63 letters, digits, dots, dashes at most."""
    return _NO_LABEL.sub("-", text)[:_LONGEST_LABEL].strip("-_.")


_WIDE = 1_000
"""Letters of a line: a rule that is broken over lines can't be searched."""


class _Dumper(yaml.SafeDumper):
    """Writes no aliases, and text of several lines as a block."""

    def ignore_aliases(self, data: Json) -> bool:  # noqa: ARG002  # as the library calls it
        return True


def _text(dumper: _Dumper, value: str) -> yaml.ScalarNode:
    style = "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


def to_yaml(value: Json) -> str:
    """Return one document."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, default_flow_style=False, width=_WIDE)


def documents(objects: Iterable[Json]) -> bytes:
    """Return a file of several documents, each after a line of three hyphens."""
    return "".join(f"---\n{to_yaml(one)}" for one in objects).encode()


CelValue: TypeAlias = "str | int | Sequence[str] | Mapping[str, CelValue]"
"""Characters of a CEL expression that need no escape."""


def literal(value: CelValue) -> str:
    """Return a value as a CEL expression: text, whole numbers, lists, and maps by text.

    Names of a spec hold letters, digits, dots, slashes and hyphens; what would end a text is
    escaped all the same.
    """
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
        return f"'{escaped}'"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Mapping):
        pairs = (f"{literal(key)}: {literal(value[key])}" for key in value)
        return f"{{{', '.join(pairs)}}}"
    return f"[{', '.join(literal(item) for item in value)}]"


BUILT = "gcluster.local/k8s"
"""Repository of the images that the Kubernetes bundle of local nodes has."""
PUBLISHED = "registry.k8s.io"
PAUSE = "pause:3.10.1"
"""An image with nothing a shell needs, which every node has. Tag as kubeadm 1.35.4 names it
(cmd/kubeadm/app/constants, PauseVersion; read 2026-11)."""
_PAUSE_LATER, _LATER = "pause:3.10.2", "1.36"
"""As kubeadm 1.36.1 and 1.36.3 name it."""
SIMULATED_GPU = "simulated-gpu:1"
"""Device plugin of GPUs that don't exist; only in the bundle of local nodes."""


def pause_image(facts: KubernetesFacts) -> str:
    """Return the image that holds nothing, as these nodes have it."""
    here = all(site.is_made_here for site in facts.spec.sites.values())
    if here:
        return f"{BUILT}/{PAUSE}"
    return f"{PUBLISHED}/{_PAUSE_LATER if has(facts.release, _LATER) else PAUSE}"


ADMISSION_API = "admissionregistration.k8s.io/v1"
ACCOUNT_LABEL = f"{DOMAIN}/account"
"""On a namespace: the account that it is."""


def validation(expression: str, message: str) -> dict[str, str]:
    """Return one rule; `message` is an expression as well."""
    return {"expression": expression, "messageExpression": message, "reason": "Forbidden"}


def matched_in_accounts(
    resources: list[dict[str, list[str]]], operations: list[str]
) -> dict[str, Json]:
    """Return what a policy is about: these kinds, in the namespaces of accounts."""
    return {
        "namespaceSelector": {"matchExpressions": [{"key": ACCOUNT_LABEL, "operator": "Exists"}]},
        "resourceRules": [one | {"operations": operations} for one in resources],
    }


def admission_policy(
    name: str,
    resources: list[dict[str, list[str]]],
    variables: Mapping[str, str],
    held: list[dict[str, str]],
    *,
    operations: list[str] | None = None,
) -> Object:
    """Return a policy that refuses what violates its rules.

    Args:
        name: its name.
        resources: the kinds it is about.
        variables: name -> expression, in order of use.
        held: its rules.
        operations: CREATE and UPDATE by default.
    """
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": matched_in_accounts(resources, operations or ["CREATE", "UPDATE"]),
        "variables": [{"name": key, "expression": text} for key, text in variables.items()],
        "validations": held,
    }
    return new(ADMISSION_API, "ValidatingAdmissionPolicy", name, spec=spec)


def policy_binding(policy: Object) -> Object:
    """Return what puts a policy to work."""
    name = policy["metadata"]["name"]
    spec: dict[str, Json] = {"policyName": name, "validationActions": ["Deny"]}
    return new(ADMISSION_API, "ValidatingAdmissionPolicyBinding", name, spec=spec)
