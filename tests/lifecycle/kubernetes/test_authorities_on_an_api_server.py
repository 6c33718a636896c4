"""What an exchange of authorities takes for granted of Kubernetes, on a real API server.

The programs of role kubernetes run; a kubelet is doubled, whose requests the real controller
manager signs.
"""

from __future__ import annotations

import base64
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from bench.simulated.api_server import ApiServer
from tests.free_port import free_port
from tests.lifecycle.operations import authorities_double as double
from tests.roles.kubernetes_node import LIBEXEC

from gcluster.lifecycle.cluster.progress import silent
from gcluster.lifecycle.kubernetes.kubectl import Kubectl
from gcluster.lifecycle.nodes.ssh import Answer, SshResult
from gcluster.lifecycle.operations.rotate.pods_trust import pods_of_before
from gcluster.schemas.load import load_text
from gcluster.schemas.spec import ClusterSpec

pytestmark = pytest.mark.kubernetes_api

SPEC = """\
apiVersion: gcluster/v1
name: demo
sites: {here: {provider: local}}
pools:
  head: {site: here, role: controller}
  gpu: {site: here, machine: sim.h100x8, count: 1}
scheduler: {type: kubernetes}
"""
KUBELET = """\
apiVersion: v1
kind: Config
clusters:
- name: c
  cluster:
    certificate-authority-data: {authority}
    server: {server}
users:
- name: u
  user: {{client-certificate: {pem}, client-key: {pem}}}
contexts:
- name: x
  context: {{cluster: c, user: u}}
current-context: x
"""
READY = 'case "$*" in *"get node "*) echo "True 9"; exit ;; esac'
"""There is no kubelet that reports."""
CONTROLLERS = (
    "certificatesigningrequest-approving-controller",
    "certificatesigningrequest-signing-controller",
    "root-ca-certificate-publisher-controller",
)
SELF = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "kubeadm:node-autoapprove-certificate-rotation"},
    "roleRef": {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "ClusterRole",
        "name": "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
    },
    "subjects": [
        {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:nodes"}
    ],
}
"""As kubeadm binds it (cmd/kubeadm/app/phases/bootstraptoken/node/tlsbootstrap.go)."""


def authority(name: str) -> tuple[str, str]:
    key, text = double.private_key()
    return double.signed(None, double.subject(name), key, key.public_key()), text


class Plane:
    """A control plane that trusts two authorities and signs by the new one; a node in it."""

    name = "head"

    def __init__(self, root: Path) -> None:
        """Lay down what the second round begins with."""
        self.root, self.held = root, root / "kubelet/pki"
        for path in (root / "pki/etcd", root / "gcluster", self.held, root / "bin"):
            path.mkdir(parents=True)
        self.old, self.new = authority("kubernetes"), authority("kubernetes")
        self.file("pki/ca.crt", self.new[0] + self.old[0])
        self.file("pki/ca.key", self.new[1])
        self.file("pki/signing-ca.crt", self.new[0])
        self.file("pki/front-proxy-ca.crt", authority("front-proxy-ca")[0])
        self.api = ApiServer(
            f"--client-ca-file={root}/pki/ca.crt",
            f"--requestheader-client-ca-file={root}/pki/front-proxy-ca.crt",
        )

    def lay_a_node(self) -> None:
        """Give a node a certificate by the old authority."""
        self.bundle = self.text("pki/ca.crt") + (self.api.folder / "pki/apiserver.crt").read_text()
        coded = base64.b64encode(self.bundle.encode()).decode()
        current = self.held / "kubelet-client-current.pem"
        server = f"https://127.0.0.1:{self.api.port}"
        self.file("kubelet.conf", KUBELET.format(server=server, authority=coded, pem=current))
        key, pem = double.private_key()
        named = double.subject("system:node:gpu001", "system:nodes")
        self.file(
            "kubelet/pki/first.pem", double.signed(self.old, named, key, key.public_key()) + pem
        )
        current.symlink_to(self.held / "first.pem")
        serving = double.signed(self.new, named, key, key.public_key()) + pem
        self.file("serving.pem", serving)
        real = self.api.folder / "kubectl"
        admin = f"shift 2; exec {real} --kubeconfig={self.api.kubeconfig}"
        self.double(
            "kubectl", f'case "$1" in *admin.conf) {admin} "$@" ;; esac\n{READY}\nexec {real} "$@"'
        )
        copy = f"cp {self.root}/serving.pem {self.held}/kubelet-server-current.pem"
        self.double("systemctl", f'case "$*" in *restart*) {copy} ;; esac')

    def file(self, name: str, text: str) -> None:
        """Write a file."""
        (self.root / name).write_text(text)

    def text(self, name: str) -> str:
        """Return a file."""
        return (self.root / name).read_text()

    def double(self, name: str, script: str) -> None:
        """Write a program."""
        self.file(f"bin/{name}", f"#!/bin/sh\n{script}\n")
        (self.root / "bin" / name).chmod(0o755)

    def manager(self, signs_by: str) -> Path:
        """Start a controller manager; return its log."""
        name = "kube-controller-manager"
        self.api.run(
            name,
            f"--kubeconfig={self.api.kubeconfig}",
            "--leader-elect=false",
            f"--controllers={','.join(CONTROLLERS)}",
            f"--cluster-signing-cert-file={self.root}/pki/{signs_by}",
            f"--cluster-signing-key-file={self.root}/pki/ca.key",
            f"--root-ca-file={self.root}/pki/ca.crt",
            f"--service-account-private-key-file={self.api.folder}/account.key",
            f"--secure-port={free_port()}",
            "--bind-address=127.0.0.1",
        )
        return self.api.folder / f"{name}.log"

    def program(self, name: str, *words: str, stdin: str = "") -> None:
        """Run a program of the role."""
        environment = {
            **os.environ,
            "PATH": f"{self.root}/bin:{os.environ['PATH']}",
            "GCLUSTER_KUBERNETES": str(self.root),
            "GCLUSTER_KUBELET": str(self.held.parent),
        }
        command = [sys.executable, str(LIBEXEC / name), *words]
        done = subprocess.run(
            command, input=stdin, capture_output=True, text=True, check=False, env=environment
        )
        assert done.returncode == 0, done.stderr

    def run(self, arguments: Sequence[str], *, stdin: str | None, timeout_s: float) -> Answer:
        """Run kubectl, as on a control plane."""
        assert timeout_s
        done = self.api.kubectl(*arguments, stdin=stdin, check=False)
        return SshResult(returncode=done.returncode, stdout=done.stdout, stderr=done.stderr)

    def stream(self, *_: Any, **__: Any) -> Answer:
        """Nothing is streamed."""
        raise AssertionError


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    made = Plane(tmp_path_factory.mktemp("plane"))
    with made.api:
        made.lay_a_node()
        assert made.api.apply([SELF]).returncode == 0
        yield made


def within(seconds: int, holds: Callable[[], object]) -> None:
    for _ in range(seconds):
        if holds():
            return
        time.sleep(1)
    raise AssertionError


def test_a_controller_manager_signs_by_a_file_of_one_certificate_alone(plane: Plane) -> None:
    log = plane.manager("ca.crt")
    within(60, lambda: "expected 1 certificate, found 2" in log.read_text(errors="replace"))


def test_a_node_gets_a_certificate_by_the_new_authority_by_the_old_one_it_has(plane: Plane) -> None:
    plane.manager("signing-ca.crt")
    plane.program("kubernetes-node-authority.py", "--certificates", stdin=plane.bundle)
    current = plane.held / "kubelet-client-current.pem"
    assert current.readlink() != plane.held / "first.pem"
    assert current.stat().st_mode & 0o777 == 0o600
    plane.file("new.crt", plane.new[0])
    verify = ["openssl", "verify", "-CAfile", str(plane.root / "new.crt"), str(current)]
    assert subprocess.run(verify, capture_output=True, check=False).returncode == 0
    command = [str(plane.api.folder / "kubectl"), f"--kubeconfig={plane.root}/kubelet.conf"]
    words = [*command, "auth", "whoami", "--output=jsonpath={.status.userInfo.username}"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.stdout == "system:node:gpu001", done.stderr
    before = current.readlink()
    plane.program("kubernetes-node-authority.py", "--certificates", stdin=plane.bundle)
    assert current.readlink() == before


def test_pods_of_all_namespaces_get_both_and_none_is_waited_for(plane: Plane) -> None:
    spec = load_text(SPEC).spec
    assert isinstance(spec, ClusterSpec)
    assert pods_of_before(Kubectl.by(plane), plane.new[0], spec, silent) == {}


def test_what_extends_the_api_trusts_the_old_one_until_it_is_taken_away(plane: Plane) -> None:
    def trusted() -> str:
        where = ("extension-apiserver-authentication", "--namespace=kube-system")
        field = "--output=jsonpath={.data.client-ca-file}"
        return plane.api.kubectl("get", "configmap", *where, field, check=False).stdout

    within(60, lambda: plane.old[0] in trusted())
    plane.file("pki/ca.crt", plane.new[0])
    within(90, lambda: plane.program("kubernetes-authorities.py", "--publish") is None and (
        plane.new[0] in trusted() and plane.old[0] not in trusted()
    ))  # fmt: skip
