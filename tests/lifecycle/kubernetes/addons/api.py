"""A real API server without nodes: how it is called, and the double of its kubelets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gcluster.lifecycle.kubernetes.kubectl import Kubectl
from gcluster.lifecycle.nodes.ssh import SshResult, SshSession


class LocalKubectl(Kubectl):
    """kubectl as a process of this machine, against a server of this machine."""

    def __init__(self, server: Any, folder: Path) -> None:
        """Take the server; no host is reached."""
        super().__init__(SshSession(folder), [])
        self.server = server
        self.calls: list[str] = []

    def run(self, *arguments: str, stdin: str | None = None, timeout_s: float = 60) -> SshResult:
        """Run it."""
        del timeout_s
        self.calls.append(" ".join(arguments))
        done = self.server.kubectl(*arguments, stdin=stdin, check=False)
        return SshResult(returncode=done.returncode, stdout=done.stdout, stderr=done.stderr)


class Kubelet:
    """The double of every kubelet: pods of jobs end as a test sets, at each wait."""

    def __init__(self, server: Any) -> None:
        """Take the server."""
        self.server = server
        self.phase = "Succeeded"
        self.ran: list[str] = []
        self.now = 0.0

    def sleep(self, seconds: float) -> None:
        """End what waits."""
        self.now += seconds
        answer = self.server.kubectl("get", "pods", "--all-namespaces", "--output=json").stdout
        for pod in json.loads(answer)["items"]:
            name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
            if pod["status"].get("phase") == "Pending" and "job-name" in pod["metadata"]["labels"]:
                self.ran.append(pod["metadata"]["labels"]["job-name"])
                status = json.dumps({"status": {"phase": self.phase}})
                self.server.kubectl(
                    *("patch", "pod", name, f"--namespace={namespace}", "--subresource=status"),
                    *("--type=merge", f"--patch={status}"),
                )
