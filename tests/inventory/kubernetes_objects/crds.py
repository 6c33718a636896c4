"""CRDs of add-ons that are to be had as Go modules, pinned by version; the module cache has them.

The registry checks what it hands out against its own log of checksums (GOSUMDB). Modules of Kueue,
JobSet, the GPU and network operators, Multus and Flux' helm-controller are not served (2026-11).
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import yaml

_FLUX = "config/crd/bases/source.toolkit.fluxcd.io"
_OPERATOR = "example/prometheus-operator-crd/monitoring.coreos.com"
MODULES = {
    "kubeflow.org": (
        "github.com/kubeflow/mpi-operator@v0.7.0",
        ("manifests/base/kubeflow.org_mpijobs.yaml",),
    ),
    "monitoring.coreos.com": (
        "github.com/prometheus-operator/prometheus-operator@v0.93.1",
        (f"{_OPERATOR}_prometheusrules.yaml", f"{_OPERATOR}_servicemonitors.yaml"),
    ),
    "source.toolkit.fluxcd.io": (
        "github.com/fluxcd/source-controller@v1.7.0",
        (f"{_FLUX}_helmrepositories.yaml", f"{_FLUX}_ocirepositories.yaml"),
    ),
    "trainer.kubeflow.org": (
        "github.com/kubeflow/trainer/v2@v2.3.0",
        (
            "manifests/base/crds/trainer.kubeflow.org_trainingruntimes.yaml",
            "manifests/base/crds/trainer.kubeflow.org_trainjobs.yaml",
        ),
    ),
    "argoproj.io": (
        "github.com/argoproj/argo-cd/v3@v3.2.0",
        ("manifests/crds/application-crd.yaml",),
    ),
    "resource.nvidia.com": (
        "sigs.k8s.io/dra-driver-nvidia-gpu@v0.4.1",
        (("deployments/helm/dra-driver-nvidia-gpu/crds/resource.nvidia.com_computedomains.yaml"),),
    ),
}
"""API group -> module, files of the CRDs of the kinds that we compile."""


def crds(group: str) -> list[Any]:
    """Return the CRDs of an API group's kinds that we compile.

    Raises:
        RuntimeError: the module is not to be had.
    """
    module, files = MODULES[group]
    folder = module_folder(module)
    return [yaml.safe_load((folder / file).read_text(encoding="utf-8")) for file in files]


def module_folder(module: str) -> Path:
    """Return where the module cache has a module: "github.com/kubeflow/mpi-operator@v0.7.0".

    Raises:
        RuntimeError: the module is not to be had.
    """
    with tempfile.TemporaryDirectory() as nowhere:
        done = subprocess.run(
            ["go", "mod", "download", "-json", module],
            cwd=nowhere,
            env={**os.environ, "GOFLAGS": "", "GOTOOLCHAIN": "auto"},
            capture_output=True,
            text=True,
            check=False,
        )
    answer = json.loads(done.stdout or "{}")
    if "Dir" not in answer:
        message = f"{module}: {answer.get('Error') or done.stderr.strip()}"
        raise RuntimeError(message)
    return Path(answer["Dir"])
