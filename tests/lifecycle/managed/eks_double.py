"""Doubles of what is behind a cloud's control plane: kubelets, its own controllers, a login.

API server, etcd, scheduler and controllers are real and of the bundle. No machine is behind a node,
and no load balancer or disk behind an object: these are what the doubles simulate.
"""

from __future__ import annotations

import http.server
import json
import os
import ssl
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

LOGIN = """\
#!/bin/sh
# A double of the AWS CLI: it knows `eks get-token` alone, and whoever asks is the administrator.
echo "$@" >>@FOLDER@/asked
echo '{"apiVersion": "client.authentication.k8s.io/v1beta1", "kind": "ExecCredential",
"status": {"token": "@TOKEN@"}}'
"""
FINALIZER = "service.kubernetes.io/load-balancer-cleanup"


class ClusterDouble:
    """Nodes whose kubelet and cloud controllers are doubles, at a real API server."""

    def __init__(self, api: Any, log: str) -> None:
        """Answer for pods: the first one of a job logs `log`, by its own pods' names."""
        self.api, self.log = api, log
        self.let_go: list[str] = []
        """What the cloud's controllers removed, in their order."""
        self.holds = False
        """The cloud does not let go of anything."""
        self._over = threading.Event()
        self._logged: set[str] = set()
        """Pods whose log was read to its end; their job is done."""
        self._port = 0
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        """Begin to answer."""
        server = self._kubelet()
        self._port = server.server_address[1]
        for target in (server.serve_forever, self._run):
            thread = threading.Thread(target=target, daemon=True)
            thread.start()
            self._threads.append(thread)
        self._server = server
        return self

    def __exit__(self, *_: object) -> None:
        """Stop answering."""
        self._over.set()
        self._server.shutdown()
        for thread in self._threads:
            thread.join(timeout=30)

    def join(self, name: str, pool: str, machine: str) -> None:
        """Register a node, ready, as EKS' image and a kubelet do it."""
        if self.api.kubectl("get", "node", name, check=False).returncode == 0:
            return
        labels = {"gcluster.local/pool": pool, "kubernetes.io/hostname": name}
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "spec": {"providerID": machine},
        }
        self.api.kubectl("create", "--filename=-", stdin=json.dumps(node))
        self.ready(name)

    def ready(self, name: str, message: str = "") -> None:
        """Have a node's kubelet say that it is ready, or why it isn't."""
        room = {"cpu": "16", "memory": "64Gi", "pods": "110"}
        status = {
            "conditions": [
                {
                    "type": "Ready",
                    "status": "False" if message else "True",
                    "reason": "double",
                    "message": message or "kubelet is posting ready status",
                }
            ],
            "capacity": room,
            "allocatable": room,
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self._port}},
            "nodeInfo": {
                "kubeletVersion": "v1.35.4-eks-1",
                "osImage": "Amazon Linux 2023 (double)",
                "kernelVersion": "6.12.0",
                "containerRuntimeVersion": "containerd://2.1.4",
                **dict.fromkeys(
                    ("machineID", "systemUUID", "bootID", "kubeProxyVersion"), "double"
                ),
                "operatingSystem": "linux",
                "architecture": "amd64",
            },
        }
        self._patch("node", name, {"status": status}, "--subresource=status")
        taints = self.api.kubectl("get", "node", name, "--output=jsonpath={.spec.taints[*].key}")
        for key in taints.stdout.split():
            if key.startswith("node.kubernetes.io/"):
                self.api.kubectl("taint", "node", name, f"{key}-")

    def _patch(self, kind: str, name: str, change: dict[str, Any], *options: str) -> None:
        words = ("patch", kind, name, "--type=merge", f"--patch={json.dumps(change)}")
        self.api.kubectl(*words, *options, check=False)

    def _run(self) -> None:
        while not self._over.wait(0.5):
            self._run_pods()
            if not self.holds:
                self._give_back()

    def _items(self, kind: str) -> list[dict[str, Any]]:
        answer = self.api.kubectl("get", kind, "--all-namespaces", "--output=json", check=False)
        return list(json.loads(answer.stdout)["items"]) if answer.returncode == 0 else []

    def _run_pods(self) -> None:
        for pod in self._items("pods"):
            where = f"--namespace={pod['metadata']['namespace']}"
            name, phase = pod["metadata"]["name"], pod["status"].get("phase")
            if pod["metadata"].get("deletionTimestamp"):
                force = ("--force", "--grace-period=0", "--wait=false")
                self.api.kubectl("delete", "pod", name, where, *force, check=False)
            elif pod["spec"].get("nodeName") and phase == "Pending":
                self._report(pod, "Running", {"running": {}})
            elif phase == "Running" and name in self._logged:
                self._report(
                    pod, "Succeeded", {"terminated": {"exitCode": 0, "reason": "Completed"}}
                )
                self._logged |= set(self._of_job(name))

    def _of_job(self, name: str) -> list[str]:
        job = name.rsplit("-", 2)[0]
        pods = (pod["metadata"]["name"] for pod in self._items("pods"))
        return [pod for pod in pods if pod.startswith(f"{job}-")]

    def _report(self, pod: dict[str, Any], phase: str, state: dict[str, Any]) -> None:
        container = {
            "name": pod["spec"]["containers"][0]["name"],
            "image": "double",
            "imageID": "double",
            "ready": phase == "Running",
            "restartCount": 0,
            "state": state,
        }
        status = {"phase": phase, "containerStatuses": [container]}
        where = f"--namespace={pod['metadata']['namespace']}"
        name = pod["metadata"]["name"]
        self._patch("pod", name, {"status": status}, "--subresource=status", where)

    def _give_back(self) -> None:
        """Let go as the cloud's controllers do, once an object is deleted."""
        for service in self._items("services"):
            if service["metadata"].get("deletionTimestamp"):
                name = service["metadata"]["name"]
                where = f"--namespace={service['metadata']['namespace']}"
                self.let_go.append(f"load balancer of {name}")
                self._patch("service", name, {"metadata": {"finalizers": None}}, where)
        for volume in self._items("persistentvolumes"):
            if volume["status"].get("phase") == "Released":
                name = volume["metadata"]["name"]
                self.let_go.append(f"disk of {name}")
                self._patch("persistentvolume", name, {"metadata": {"finalizers": None}})
                self.api.kubectl("delete", "persistentvolume", name, "--wait=false", check=False)

    def logged(self, pod: str) -> None:
        """Take that a pod's log was read."""
        self._logged.add(pod)

    def _kubelet(self) -> http.server.HTTPServer:
        """Return what answers where the API server requests a pod's log from a node."""
        double = self

        class Kubelet(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                pod = self.path.split("/")[3]
                job = pod.rsplit("-", 2)[0]
                body = double.log.replace("gcluster-smoke-ab12cd-main-1", job).encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain")
                self.end_headers()
                self.wfile.write(body)
                double.logged(pod)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        folder = Path(self.api.folder)
        key, certificate = folder / "kubelet.key", folder / "kubelet.crt"
        made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=kubelet"]
        made += ["-keyout", str(key), "-out", str(certificate), "-days", "2"]
        subprocess.run(made, check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Kubelet)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        return server


def put_programs(api: Any, folder: Path) -> str:
    """Put kubectl and the double of the AWS CLI into a folder; return a PATH that begins there."""
    folder.mkdir()
    (folder / "kubectl").symlink_to(api.folder / "kubectl")
    token = (api.folder / "tokens.csv").read_text(encoding="utf-8").partition(",")[0]
    login = folder / "aws"
    login.write_text(LOGIN.replace("@FOLDER@", str(folder)).replace("@TOKEN@", token))
    login.chmod(0o700)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def until(holds: Callable[[], bool], what: str, seconds: float = 60) -> None:
    """Wait for something that a controller does."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(0.5)
