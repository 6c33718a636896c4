"""How this machine gets into a cloud's control plane: by the cloud's own login plugin, no secret.

The kubeconfig names a program that asks the cloud for a token when kubectl needs one, with the
login that the stack was made with. So it holds an address, a certificate and a command line.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from ....schemas.derived.control_planes import Managed
from ....schemas.diagnostics import Diagnostic, Severity
from ....stacks.provider import ControlPlaneAt

KUBECTL = "kubectl"
FILE = "kubeconfig"
"""Its name in the cluster's folder on this machine."""
_API = "client.authentication.k8s.io/v1beta1"
"""The version of plugins' answers that all three give (November 2026)."""
_AKS_SERVER = "6dae42f8-4368-4678-94ff-3960e28e3630"
"""Entra's id of AKS' API servers, the same in every tenant (azure.github.io/kubelogin, "Using
kubelogin with AKS", November 2026)."""


class Plugin(msgspec.Struct, frozen=True, kw_only=True):
    """A cloud's login plugin."""

    program: str
    install: str
    """How it gets onto this machine, in words."""
    needs: tuple[str, ...] = ()
    """Programs that it runs itself."""

    @property
    def programs(self) -> tuple[str, ...]:
        """Return all that must be on the PATH, kubectl first."""
        return KUBECTL, self.program, *self.needs


PLUGINS: dict[Managed, Plugin] = {
    "eks": Plugin(program="aws", install="install the AWS CLI, version 2"),
    "gke": Plugin(
        program="gke-gcloud-auth-plugin",
        install="gcloud components install gke-gcloud-auth-plugin",
    ),
    "aks": Plugin(
        program="kubelogin", install="az aks install-cli, which brings both", needs=("az",)
    ),
}


def missing_programs(
    managed: Managed, find: Callable[[str], str | None] = shutil.which
) -> tuple[str, ...]:
    """Return the programs that aren't on the PATH of this machine."""
    return tuple(name for name in PLUGINS[managed].programs if find(name) is None)


def refusal(managed: Managed, missing: tuple[str, ...]) -> Diagnostic:
    """Return what is said where programs are missing."""
    plugin = PLUGINS[managed]
    ways = []
    if KUBECTL in missing:
        ways.append("kubectl: kubernetes.io/docs/tasks/tools")
    if set(missing) - {KUBECTL}:
        ways.append(f"{plugin.program}: {plugin.install}")
    return Diagnostic(
        code="GC1040",
        severity=Severity.ERROR,
        summary=f"{managed} is reached from this machine, which lacks {', '.join(missing)}",
        path=("scheduler", "control_plane"),
        hint="; ".join(ways),
    )


def kubeconfig(managed: Managed, plane: ControlPlaneAt) -> dict[str, Any]:
    """Return a kubeconfig whose user is the cloud's login (pure)."""
    cluster = {"server": plane.endpoint, "certificate-authority-data": plane.authority}
    name = plane.name
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": {"exec": _exec(managed, plane)}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }


def write_kubeconfig(folder: Path, managed: Managed, plane: ControlPlaneAt) -> Path:
    """Write it into the cluster's folder, for this user alone; return the file."""
    path, scratch = folder / FILE, folder / f".{FILE}.{os.getpid()}"
    scratch.unlink(missing_ok=True)
    scratch.touch(mode=0o600)
    scratch.write_bytes(msgspec.json.encode(kubeconfig(managed, plane)))  # JSON is YAML
    scratch.replace(path)
    return path


def _exec(managed: Managed, plane: ControlPlaneAt) -> dict[str, Any]:
    command: dict[str, Any] = {
        "apiVersion": _API,
        "command": PLUGINS[managed].program,
        "interactiveMode": "Never",
        "installHint": PLUGINS[managed].install,
    }
    if managed == "eks":
        region = ["--region", plane.region] if plane.region else []
        words = ["eks", "get-token", "--cluster-name", plane.name, "--output", "json"]
        return command | {"args": [*region, *words]}
    if managed == "aks":
        words = ["get-token", "--login", "azurecli", "--server-id", _AKS_SERVER]
        return command | {"args": words}
    return command | {"provideClusterInfo": True}
