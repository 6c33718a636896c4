"""API server, etcd, scheduler and controllers of our bundle, as processes on loopback: no nodes.

Used by: the strict dry run of compiled manifests (tests/inventory/kubernetes_objects), and
kubernetes_scale.py. Nothing here needs a container, root or a network.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from gcluster.lifecycle.kubernetes.release.build import ensure_program

SERVICES = "10.96.0.0/16"
_KUBE = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
_READY_S = 180.0


class ApiServer:
    """A control plane without nodes, as a context: its processes end with it."""

    def __init__(self, *arguments: str) -> None:
        """Make a folder for keys, data and logs; `arguments` are the API server's besides ours."""
        self._arguments = arguments
        self.folder = Path(tempfile.mkdtemp(prefix="gcluster-api-"))
        self.port = _free_port()
        self.kubeconfig = self.folder / "kubeconfig"
        self.etcd = f"http://127.0.0.1:{_free_port()}"
        self._token = secrets.token_hex(16)
        self._running: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        """Start etcd and the API server, and wait until it is ready."""
        try:
            self._start()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the processes, the last one first."""
        self._stop()

    def run(self, name: str, *arguments: str, program: Path | None = None) -> None:
        """Start a program of the bundle, or another one, until the end; its log is NAME.log."""
        with (self.folder / f"{name}.log").open("ab") as log:
            command = [str(program or self.folder / name), *arguments]
            self._running.append(subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder))

    def kubectl(
        self, *arguments: str, stdin: str | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Call the API by kubectl."""
        command = [str(self.folder / "kubectl"), f"--kubeconfig={self.kubeconfig}", *arguments]
        # Discovery is kept in the home folder otherwise.
        own = {**os.environ, "HOME": str(self.folder)}
        done = subprocess.run(
            command, input=stdin, capture_output=True, text=True, check=False, env=own
        )
        if check and done.returncode != 0:
            message = f"kubectl {' '.join(arguments[:3])}: {done.stderr.strip()[-2000:]}"
            raise RuntimeError(message)
        return done

    def apply(
        self, objects: Sequence[object], *, dry: bool = False
    ) -> subprocess.CompletedProcess[str]:
        """Apply objects by server-side apply, strictly; `dry`: the server only validates.

        Nothing is raised: refusals are in the response, object by object.
        """
        given = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        words = ["apply", "--server-side", "--validate=strict", "--field-manager=gcluster"]
        words += ["--dry-run=server"] if dry else []
        return self.kubectl(*words, "--filename=-", stdin=json.dumps(given), check=False)

    def run_scheduler(self, *, with_nodes: bool = False) -> None:
        """Start scheduler and controllers: pods get nodes, namespaces their accounts.

        Args:
            with_nodes: also run the controller that removes the taint of a ready node, and allow
                heartbeats an hour late. Else no controller manages nodes: there are no machines.
        """
        controllers = ["*", "-node-ipam-controller"]
        controllers += [] if with_nodes else ["-node-lifecycle-controller"]
        shared = [f"--kubeconfig={self.kubeconfig}", "--leader-elect=false", "--profiling=false"]
        rates = ["--kube-api-qps=500", "--kube-api-burst=1000"]
        self.run(
            "kube-controller-manager",
            *shared,
            *rates,
            f"--service-account-private-key-file={self.folder}/account.key",
            f"--root-ca-file={self.folder}/pki/apiserver.crt",
            "--use-service-account-credentials=false",
            f"--controllers={','.join(controllers)}",
            "--node-monitor-grace-period=1h",
            f"--secure-port={_free_port()}",
            "--bind-address=127.0.0.1",
        )
        secure = f"--secure-port={_free_port()}"
        self.run("kube-scheduler", *shared, *rates, secure, "--bind-address=127.0.0.1")

    def _start(self) -> None:
        kube, etcd = ensure_program("kube", _silent), ensure_program("etcd", _silent)
        for name in _KUBE:
            (self.folder / name).symlink_to(kube)
        (self.folder / "etcd").symlink_to(etcd)
        client, peer = self.etcd, f"http://127.0.0.1:{_free_port()}"
        self.run(
            "etcd",
            f"--data-dir={self.folder}/data",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
            "--log-level=warn",
        )
        self._write_keys()
        self.run(
            "kube-apiserver",
            f"--etcd-servers={client}",
            f"--secure-port={self.port}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--cert-dir={self.folder}/pki",
            f"--token-auth-file={self.folder}/tokens.csv",
            "--authorization-mode=Node,RBAC",
            f"--service-cluster-ip-range={SERVICES}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self.folder}/account.key",
            f"--service-account-signing-key-file={self.folder}/account.key",
            "--allow-privileged=true",  # as kubeadm sets it: Pod Security decides whose pods may
            "--max-requests-inflight=2000",
            "--max-mutating-requests-inflight=1000",
            *self._arguments,
        )
        self._wait()

    def _write_keys(self) -> None:
        key = self.folder / "account.key"
        made = ["openssl", "genrsa", "-out", str(key), "2048"]
        subprocess.run(made, check=True, capture_output=True)
        tokens = self.folder / "tokens.csv"
        tokens.touch(mode=0o600)
        tokens.write_text(f"{self._token},admin,admin,system:masters\n", encoding="utf-8")
        self.kubeconfig.touch(mode=0o600)
        server = f"https://127.0.0.1:{self.port}"
        authority = str(self.folder / "pki/apiserver.crt")
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {"name": "c", "cluster": {"server": server, "certificate-authority": authority}}
            ],
            "users": [{"name": "u", "user": {"token": self._token}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        self.kubeconfig.write_text(json.dumps(config), encoding="utf-8")

    def _wait(self) -> None:
        until = time.monotonic() + _READY_S
        while time.monotonic() < until:
            if any(process.poll() is not None for process in self._running):
                break
            if (self.folder / "pki/apiserver.crt").exists():
                requested = self.kubectl("get", "--raw=/readyz", check=False)
                if requested.stdout.strip() == "ok" and self._has_schemas():
                    return
            time.sleep(0.5)
        log = self.folder / "kube-apiserver.log"
        words = log.read_text(errors="replace")[-2000:] if log.exists() else "it wrote no log"
        message = f"the API server was not ready within {_READY_S:.0f} s: {words}"
        raise RuntimeError(message)

    def _has_schemas(self) -> bool:
        """Make the server merge its schemas, which its first client would wait for."""
        requested = self.kubectl("get", "--raw=/openapi/v2", "--request-timeout=120s", check=False)
        return requested.returncode == 0

    def _stop(self) -> None:
        for process in reversed(self._running):
            process.terminate()
        for process in reversed(self._running):
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _silent(_: object) -> None:
    """Discard progress events."""
