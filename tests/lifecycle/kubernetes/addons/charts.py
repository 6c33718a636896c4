"""Small charts, packed as archives: the same bytes for the same files."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Mapping
from typing import Any

WIDGETS = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
SETTINGS = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {colour: {{ .Values.colour | quote }}, release: {{ .Capabilities.KubeVersion.Minor | quote }}}
"""
WIDGET = """\
apiVersion: example.org/v1
kind: Widget
metadata: {name: first}
spec: {size: 1}
"""
ELSEWHERE = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: kube-system}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]
"""
MADE = """\
apiVersion: v1
kind: Secret
metadata: {name: made}
stringData: {key: {{ randAlphaNum 24 | quote }}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: trusts}
data: {of: {{ randAlphaNum 24 | quote }}, also: {{ .Values.colour | quote }}}
"""
"""What is another thing each time that it is rendered, as charts' own certificates are."""
MANAGER = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: manager, labels: {app.kubernetes.io/managed-by: {{ .Release.Service }}}}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: manager}}
  template:
    metadata: {labels: {app: manager}}
    spec: {containers: [{name: manager, image: "example.org/manager:1"}]}
"""


def hook(name: str, events: str, kind: str = "Job") -> str:
    """Return a job (or a pod) that is a hook."""
    pod = '{restartPolicy: Never, containers: [{name: one, image: "example.org/hook:1"}]}'
    spec = pod if kind == "Pod" else f"{{backoffLimit: 0, template: {{spec: {pod}}}}}"
    return f"""\
apiVersion: {"v1" if kind == "Pod" else "batch/v1"}
kind: {kind}
metadata: {{name: {name}, annotations: {{helm.sh/hook: "{events}"}}}}
spec: {spec}
"""


def books(labels: dict[str, str]) -> dict[str, Any]:
    """Return a StatefulSet that makes a claim, and wants it to go with it."""
    size = {"resources": {"requests": {"storage": "1Gi"}}}
    container = {"name": "one", "image": "example.org/books:1"}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "books", "namespace": "kube-system", "labels": labels},
        "spec": {
            "serviceName": "books",
            "replicas": 1,
            "selector": {"matchLabels": {"app": "books"}},
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete"},
            "template": {
                "metadata": {"labels": {"app": "books"}},
                "spec": {"containers": [container]},
            },
            "volumeClaimTemplates": [
                {"metadata": {"name": "pages"}, "spec": {"accessModes": ["ReadWriteOnce"], **size}}
            ],
        },
    }


def chart(
    name: str,
    version: str,
    templates: Mapping[str, str],
    *,
    crds: Mapping[str, str] | None = None,
    values: str = "{colour: blue, replicas: 0}\n",
) -> bytes:
    """Return a chart's archive."""
    files = {
        "Chart.yaml": f"apiVersion: v2\nname: {name}\nversion: {version}\n",
        "values.yaml": values,
        **{f"templates/{file}.yaml": text for file, text in templates.items()},
        **{f"crds/{file}.yaml": text for file, text in (crds or {}).items()},
    }
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as archive:
        for path, text in sorted(files.items()):
            entry = tarfile.TarInfo(f"{name}/{path}")
            entry.size, entry.mode = len(text.encode()), 0o644
            archive.addfile(entry, io.BytesIO(text.encode()))
    return gzip.compress(plain.getvalue(), mtime=0)


def full(version: str = "1.0.0", **more: str) -> bytes:
    """Return the chart `widgets` with one of everything."""
    templates = {
        "settings": SETTINGS,
        "first": WIDGET,
        "elsewhere": ELSEWHERE,
        "manager": MANAGER,
        "before": hook("before", "pre-install,pre-upgrade"),
        "after": hook("after", "post-install"),
        "clean": hook("clean", "pre-delete"),
        "try": hook("try", "test", "Pod"),
        **more,
    }
    kept = {name: text for name, text in templates.items() if text}
    return chart("widgets", version, kept, crds={"widgets": WIDGETS})
