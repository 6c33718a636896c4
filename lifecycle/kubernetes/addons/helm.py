"""Renders a chart and values to objects with `helm template`; helm is used for nothing else.

It contacts no cluster: `lookup` in a chart returns nothing.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

import msgspec

from ....inventory.compile.steps import Json
from ...cluster.outcome import Exit, failure

OLDEST = (3, 18)
"""Helm 3 takes charts for Kubernetes as new as ours from this release on."""
_LIMIT_S = 120
_LINES = 20
"""Most lines of helm's message that are shown."""


class Helm(msgspec.Struct, frozen=True, kw_only=True):
    """A helm that is new enough."""

    path: str
    version: str

    def template(
        self,
        chart: bytes,
        name: str,
        *,
        namespace: str,
        values: Mapping[str, Json],
        release: str,
    ) -> bytes:
        """Return a chart's objects as YAML, its CRDs first; without its tests.

        Args:
            chart: its archive.
            name: of the release.
            namespace: where it runs.
            values: that override the chart's own.
            release: of Kubernetes: "1.35".

        Raises:
            LifecycleError: GC1062, with helm's message.
        """
        with tempfile.TemporaryDirectory(prefix="gcluster-chart-") as folder:
            archive = Path(folder) / "chart.tgz"
            archive.write_bytes(chart)
            command = [
                *(self.path, "template", name, str(archive), f"--namespace={namespace}"),
                *("--include-crds", "--skip-tests", f"--kube-version={release}", "--values=-"),
            ]
            # Its plugins, repositories and kubeconfig are not this cluster's.
            own = {
                "PATH": "/usr/bin:/bin",
                "HOME": folder,
                "KUBECONFIG": f"{folder}/none",
                "HELM_NO_PLUGINS": "1",
            }
            try:
                done = subprocess.run(
                    command,
                    input=msgspec.json.encode(values),
                    env=own,
                    capture_output=True,
                    check=False,
                    timeout=_LIMIT_S,
                )
            except (OSError, subprocess.TimeoutExpired) as error:
                raise failure("GC1062", f"add-on {name}: helm did not end: {error}") from None
        if done.returncode != 0:
            words = done.stderr.decode(errors="replace").strip().splitlines() or ["no output"]
            raise failure(
                "GC1062",
                f"add-on {name}: helm {self.version} can't render the chart: {words[-1]}",
                detail="\n".join(words[-_LINES:]),
                exit_code=Exit.REFUSED,
            )
        return done.stdout


def find_helm() -> Helm:
    """Return the helm of this machine.

    Raises:
        LifecycleError: GC1061: there is none, or it is too old.
    """
    oldest = ".".join(map(str, OLDEST))
    hint = f"install Helm {oldest} or newer on this machine: helm.sh/docs/intro/install"
    path = shutil.which("helm")
    if path is None:
        raise failure(
            "GC1061",
            "add-ons are Helm charts, and there is no helm on PATH",
            hint=hint,
            exit_code=Exit.REFUSED,
        )
    try:
        stdout = subprocess.run(
            [path, "version", "--template={{.Version}}"],
            capture_output=True,
            text=True,
            check=False,
            timeout=_LIMIT_S,
        ).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        stdout = str(error)
    found = re.match(r"v(\d+)\.(\d+)", stdout)
    if found is None or (int(found[1]), int(found[2])) < OLDEST:
        raise failure(
            "GC1061",
            f"{path} is {stdout.strip() or 'no helm'}, and {oldest} is the oldest that will do",
            hint=hint,
            exit_code=Exit.REFUSED,
        )
    return Helm(path=path, version=stdout.strip())
