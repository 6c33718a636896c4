"""Login to a cloud's control plane with the cloud's own login plugin, without a stored secret.

The kubeconfig names a program that gets a token from the cloud when kubectl needs one, with the
credentials that the stack was created with. So it holds an address, a certificate and a command
line.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

import msgspec

from ....inventory.hosts import ClusterInventory
from ....schemas.derived.control_planes import Managed, managed_by
from ....schemas.diagnostics import Diagnostic, Severity
from ....schemas.load import load
from ....stacks.io import atomic
from ....stacks.provider import ControlPlaneAt
from ....stacks.registry import managed_kubernetes
from ...cluster.cluster import SpecError
from ...nodes.ssh import Answer, SshResult, SshSession, Unreachable
from ...planning.preflight.doctor import Need
from ..kubectl import Kubectl, kubeconfig_document

KUBECTL = "kubectl"
FILE = "kubeconfig"
"""Its name in the cluster's folder on this machine."""
_API = "client.authentication.k8s.io/v1beta1"
"""The version of plugins' answers that all three give (November 2026)."""


def programs(managed: Managed) -> tuple[str, ...]:
    """Return all that must be on the PATH, kubectl first."""
    plugin = managed_kubernetes(managed).login
    return KUBECTL, plugin.program, *plugin.needs


def missing_programs(
    managed: Managed, find: Callable[[str], str | None] = shutil.which
) -> tuple[str, ...]:
    """Return the programs that aren't on the PATH of this machine."""
    return tuple(name for name in programs(managed) if find(name) is None)


def refusal(managed: Managed, missing: tuple[str, ...]) -> Diagnostic:
    """Return the finding of missing programs."""
    plugin = managed_kubernetes(managed).login
    installs = []
    if KUBECTL in missing:
        installs.append("kubectl: kubernetes.io/docs/tasks/tools")
    if set(missing) - {KUBECTL}:
        installs.append(f"{plugin.program}: {plugin.install}")
    return Diagnostic(
        code="GC1040",
        severity=Severity.ERROR,
        summary=f"{managed} is reached from this machine, which lacks {', '.join(missing)}",
        path=("scheduler", "control_plane"),
        hint="; ".join(installs),
    )


def kubeconfig(managed: Managed, plane: ControlPlaneAt) -> dict[str, Any]:
    """Return a kubeconfig whose user is the cloud's login (pure)."""
    cluster = {"server": plane.endpoint, "certificate-authority-data": plane.authority}
    return kubeconfig_document(plane.name, cluster, plane.name, {"exec": _exec(managed, plane)})


def write_kubeconfig(folder: Path, managed: Managed, plane: ControlPlaneAt) -> Path:
    """Write it into the cluster's folder, for this user alone; return the file."""
    path = folder / FILE
    atomic.write(path, msgspec.json.encode(kubeconfig(managed, plane)))  # JSON is YAML
    return path


def _exec(managed: Managed, plane: ControlPlaneAt) -> dict[str, Any]:
    plugin = managed_kubernetes(managed).login
    command: dict[str, Any] = {
        "apiVersion": _API,
        "command": plugin.program,
        "interactiveMode": "Never",
        "installHint": plugin.install,
    }
    if plugin.arguments is None:
        return command | {"provideClusterInfo": True}
    return command | {"args": list(plugin.arguments(plane))}


class LocalKubectl:
    """This machine as a way to the API (`Way`)."""

    name = "this machine"

    def __init__(self, folder: Path) -> None:
        """Use the kubeconfig in a cluster's folder; nothing is run yet."""
        self._folder = folder

    def run(self, arguments: Sequence[str], *, stdin: str | None, timeout_s: float) -> Answer:
        """Run kubectl to its end; see `Way`."""
        if (lacking := self._lacking()) is not None:
            return lacking
        try:
            done = subprocess.run(
                self._command(arguments),
                input=stdin or "",
                capture_output=True,
                text=True,
                errors="replace",
                timeout=timeout_s,
                check=False,
                env=self._environment(),
            )
        except subprocess.TimeoutExpired:
            return Unreachable(reason=f"kubectl gave no answer within {timeout_s:.0f} s")
        except FileNotFoundError:
            return _no_kubectl()
        return SshResult(returncode=done.returncode, stdout=done.stdout, stderr=done.stderr)

    def stream(
        self, arguments: Sequence[str], take: Callable[[str], None], *, timeout_s: float
    ) -> Answer:
        """Run kubectl and pass on its output line by line; see `Way`."""
        if (lacking := self._lacking()) is not None:
            return lacking
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
            try:
                process = subprocess.Popen(
                    self._command(arguments),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    text=True,
                    errors="replace",
                    env=self._environment(),
                )
            except FileNotFoundError:
                return _no_kubectl()
            return _followed(process, errors, take, timeout_s)

    def _lacking(self) -> Unreachable | None:
        if (self._folder / FILE).is_file():
            return None
        return Unreachable(reason="the stack has no control plane yet")

    def _command(self, arguments: Sequence[str]) -> list[str]:
        return [KUBECTL, f"--kubeconfig={self._folder / FILE}", *arguments]

    def _environment(self) -> dict[str, str]:
        # Discovery is kept with the cluster, and goes with it.
        return {**os.environ, "KUBECACHEDIR": str(self._folder / "kubectl-cache")}


def local_kubectl(folder: Path) -> Kubectl:
    """Return the API of a cluster whose folder on this machine has its kubeconfig."""
    return Kubectl.by(LocalKubectl(folder))


def run_shell(words: Callable[[str], str], folder: Path, timeout_s: float = 120) -> str:
    """Run a shell line that calls kubectl with its kubeconfig; return its output.

    A missing program, or an API that doesn't respond, gives no output.
    """
    try:
        done = subprocess.run(
            ["sh", "-s"],
            input=words(str(folder / FILE)),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def _followed(
    process: subprocess.Popen[str], errors: IO[str], take: Callable[[str], None], timeout_s: float
) -> Answer:
    late = threading.Event()

    def give_up() -> None:
        late.set()
        process.kill()

    timer = threading.Timer(timeout_s, give_up)
    timer.start()
    try:
        with process:
            for line in process.stdout or ():
                take(line)
            status = process.wait()
    except BaseException:
        process.kill()
        raise
    finally:
        timer.cancel()
    if late.is_set():
        return Unreachable(reason=f"kubectl came to no end within {timeout_s:.0f} s")
    errors.seek(0)
    return SshResult(returncode=status, stdout="", stderr=errors.read())


def _no_kubectl() -> Unreachable:
    return Unreachable(reason="kubectl is not on the PATH")


def needs_of(path: Path, find: Callable[[str], str | None] = shutil.which) -> list[Need]:
    """Return the programs for a spec whose control plane a cloud runs; [] for all others.

    Raises:
        SpecError: the spec has errors.
    """
    loaded = load(path)
    if loaded.spec is None:
        raise SpecError(loaded)
    managed = managed_by(loaded.spec)
    if managed is None:
        return []
    plugin, missing = managed_kubernetes(managed).login, missing_programs(managed, find)
    why = {
        KUBECTL: f"queries the control plane that {managed} runs",
        plugin.program: f"logs kubectl in to {managed}",
    }
    how = {KUBECTL: "kubernetes.io/docs/tasks/tools"}
    return [
        Need(
            name,
            why.get(name, f"{plugin.program} gets the login"),
            name not in missing,
            command=how.get(name, plugin.install),
        )
        for name in programs(managed)
    ]


def kubectl_of(session: SshSession, inventory: ClusterInventory) -> Kubectl:
    """Return the API of a cluster whose control planes are in `inventory`, first one first.

    Where a cloud runs them, kubectl runs on this machine, with the kubeconfig that was written to
    the cluster's folder when the nodes were observed.
    """
    if inventory.is_managed:
        return local_kubectl(session.workdir)
    real = [h for h in inventory.with_role("controller") if h.connection == "ssh"]
    return Kubectl(session, real)
