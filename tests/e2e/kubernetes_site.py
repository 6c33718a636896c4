"""A cluster under Kubernetes for the end-to-end tests, and queries of its API."""

from __future__ import annotations

import json
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from gcluster.lifecycle.kubernetes.release.recipe import recipe
from gcluster.lifecycle.status.waste import node_program
from gcluster.lifecycle.status.waste.prometheus import FOLDER, PORT

from .conftest import LiveCluster, until

SPEC = """\
apiVersion: gcluster/v1
name: {name}
sites: {{here: {{provider: local}}}}
pools:
  head: {{site: here, role: controller}}
  gpu: {{site: here, machine: sim.h100x8, count: {count}}}
scheduler:
  type: kubernetes
  kueue: false
  qos:
    low: {{priority: 10, preemptible: cancel}}
    high: {{priority: 1000, preempts: [low]}}
  accounts:
    physics: {{qos: [low, high], default_qos: low, gpu_quota: {quota}, users: [ada]}}
    {more}
{login}users:
  - {{name: ada, uid: 2001}}
{end}
"""
LOGIN = """\
  oidc:
    {issuer: "https://login.invalid", client_id: kubernetes, groups: {physics: [/physics]}}
"""
SMOKE = "smoke: {allreduce: {sizes: 8B..64KiB, iterations: 2}}\n"
DNS = next(
    f"{recipe().repository}/{i.name}:{i.tag}" for i in recipe().images if i.name == "coredns"
)
PAUSE = next(
    f"{recipe().repository}/{i.name}:{i.tag}" for i in recipe().images if i.name == "pause"
)
KERNEL = (
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
    "fs/inotify/max_user_instances",
)
"""Settings of the machine that a kubelet would change."""
RESTRICTED = {
    "runAsNonRoot": True,
    "runAsUser": 65534,
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
"""What containers of accounts say (Kubernetes, Pod Security Standards)."""
_ASK = Path(__file__).parents[2] / "molecule" / "kubernetes" / "tests" / "query-name"


class KubernetesCluster(LiveCluster):
    """Drives the command on a spec of one control plane and some nodes with eight GPUs each."""

    def __init__(self, folder: Path, nodes: int = 1) -> None:
        """Write the spec; nothing is started."""
        super().__init__(folder)
        self.name = f"k8s-{secrets.token_hex(3)}"
        self.write_spec(nodes=nodes)

    def write_spec(
        self,
        *,
        nodes: int,
        quota: int = 0,
        more: str = "",
        login: str = LOGIN,
        end: str = SMOKE,
    ) -> None:
        """Write the spec.

        Args:
            nodes: how many have GPUs.
            quota: GPUs of the account; 0: as many as there are.
            more: another account.
            login: the identity provider; "": none.
            end: more sections.
        """
        quota = quota or 8 * nodes
        text = SPEC.format(
            name=self.name, count=nodes, quota=quota, more=more, login=login, end=end
        )
        self.spec.write_text(text)

    def up(self) -> Any:
        """Bring it up; return the document."""
        return self.json("up", str(self.spec), "--yes")

    def kubectl(self, *arguments: str, stdin: str = "", expect: int | None = 0) -> str:
        """Run kubectl on the control plane as root; return what it printed."""
        name = f"gcluster-{self.name}-head"
        run = ["podman", "exec", "--interactive", name, "kubectl"]
        done = subprocess.run(
            [*run, "--kubeconfig=/etc/kubernetes/admin.conf", *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
        assert expect is None or done.returncode == expect, done.stdout + done.stderr
        return done.stdout + done.stderr

    def get(self, *what: str) -> Any:
        """Return an answer of the API."""
        return json.loads(self.kubectl("get", *what, "--output=json"))

    def ready(self) -> dict[str, bool]:
        """Return node -> whether it is ready."""
        return {
            node["metadata"]["name"]: any(
                c["type"] == "Ready" and c["status"] == "True" for c in node["status"]["conditions"]
            )
            for node in self.get("nodes")["items"]
        }

    def apply(self, *objects: dict[str, Any], expect: int | None = 0) -> str:
        """Apply objects; return what kubectl said."""
        listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        return self.kubectl("apply", "--filename=-", stdin=json.dumps(listed), expect=expect)

    def token(self) -> str:
        """Return a token of the service account of namespace default."""
        return self.kubectl("create", "token", "default").strip()

    def takes(self, token: str) -> bool:
        """Return whether the API server takes a token."""
        server = "$(grep -o 'https://.*' /etc/kubernetes/admin.conf)"
        line = f"kubectl --kubeconfig=/dev/null --server={server} --insecure-skip-tls-verify"
        told = self.on("head", f"{line} --token={token} get --raw /api 2>&1 || true")
        assert "versions" in told or "Unauthorized" in told or "logged in" in told, told
        return "versions" in told

    def metric(self, expression: str) -> list[dict[str, Any]]:
        """Return what the cluster's Prometheus answers to a query."""
        program = Path(node_program.__file__).read_text()
        run = ["podman", "exec", "--interactive", f"gcluster-{self.name}-head", "python3", "-c"]
        done = subprocess.run(
            [*run, program, FOLDER, str(PORT)],
            input=json.dumps([["query", {"query": expression}]]),
            capture_output=True,
            text=True,
            check=True,
        )
        found: list[dict[str, Any]] = json.loads(done.stdout)[0]["data"]["result"]
        return found

    def phase(self, pod: str, namespace: str = "physics") -> str:
        """Return a pod's phase; "" where there is none."""
        path = "--output=jsonpath={.status.phase}"
        return self.kubectl(
            "get", "pod", pod, f"--namespace={namespace}", "--ignore-not-found", path
        )

    def runs(self, pod: str) -> None:
        """Wait until a pod of the account runs."""
        until(lambda: self.phase(pod) == "Running", seconds=90)

    def answered(self, pod: dict[str, Any]) -> str:
        """Resolve the API's service at a pod that serves DNS; return the address."""
        done = subprocess.run(
            [
                *("podman", "exec", "--interactive", f"gcluster-{self.name}-head", "python3", "-"),
                *(pod["status"]["podIP"], "5300"),
            ],
            input=_ASK.read_text(),
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout.strip()

    def finds_names(self, pod: dict[str, Any]) -> None:
        """Wait until a pod that answers DNS knows where the API's service is."""
        until(lambda: self.answered(pod) == "10.96.0.1", seconds=60)

    def cut_off(self, step: str, *, killing: str, on: str = "head") -> None:
        """Kill an `up` once it is at a step, and then what that step runs on a node."""
        command = [str(Path(sys.executable).with_name("gcluster")), "up", str(self.spec), "--yes"]
        running = subprocess.Popen(
            [*command, "--format", "json"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment,
        )
        assert running.stderr is not None
        output = ""
        for line in running.stderr:
            output += line
            if step in str(json.loads(line).get("detail", "")):
                break
        else:
            raise AssertionError(output)
        node = f"gcluster-{self.name}-{on}"
        alive = ["podman", "exec", node, "pgrep", "--full", killing]
        until(lambda: subprocess.run(alive, capture_output=True, check=False).returncode == 0, 120)
        time.sleep(1)  # in the midst of it
        running.send_signal(signal.SIGKILL)
        running.wait()
        end = ["podman", "exec", node, "pkill", "-KILL", "--full", killing]
        subprocess.run(end, capture_output=True, check=False)

    def free(self) -> None:
        """End the account's pods: the AllReduce of the next `up` wants every node."""
        self.kubectl("delete", "pods", "--all", "--namespace=physics", "--wait")

    def volumes(self) -> list[str]:
        """Return the anonymous volumes of this cluster's containers."""
        form = '{{range .Mounts}}{{if eq .Type "volume"}}{{.Name}} {{end}}{{end}}'
        ids = self.engine("ps", "--all")
        answer = subprocess.run(
            ["podman", "inspect", "--format", form, *ids],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        return answer.stdout.split()


def pod(name: str, *, gpus: int = 0, qos: str = "", namespace: str = "physics") -> dict[str, Any]:
    """Return a pod that holds GPUs and sleeps."""
    container: dict[str, Any] = {
        "name": "main",
        "image": PAUSE,
        "imagePullPolicy": "Never",
        "securityContext": RESTRICTED,
    }
    if gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": str(gpus)}}
    spec: dict[str, Any] = {"containers": [container], "terminationGracePeriodSeconds": 0}
    if qos:
        spec["priorityClassName"] = qos
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def name_servers(namespace: str = "default", image: str = DNS) -> list[dict[str, Any]]:
    """Return a DNS server for every node, each of which forwards to the cluster's own.

    Who is answered by one on another node has crossed between nodes, and come to a service.
    """
    labels = {"app": "names"}
    corefile = ".:5300 {\n  forward . /etc/resolv.conf\n}\n"
    container = {
        "name": "dns",
        "image": image,
        "imagePullPolicy": "Never",
        "args": ["-conf", "/conf/Corefile"],
        "volumeMounts": [{"name": "conf", "mountPath": "/conf"}],
    }
    template = {
        "metadata": {"labels": labels},
        "spec": {
            "tolerations": [{"operator": "Exists"}],
            "containers": [container],
            "volumes": [{"name": "conf", "configMap": {"name": "names"}}],
        },
    }
    metadata = {"name": "names", "namespace": namespace}
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": metadata,
            "data": {"Corefile": corefile},
        },
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": metadata,
            "spec": {"selector": {"matchLabels": labels}, "template": template},
        },
    ]


def kernel() -> dict[str, str]:
    """Return what this machine's kernel is set to."""
    return {name: Path("/proc/sys", name).read_text().strip() for name in KERNEL}
