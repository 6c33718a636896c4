"""Secrets of a real API server are written again in a real etcd by another key, and stay readable.

The program of role kubernetes does it. Here the API server reads its file of keys by itself, within
a minute; on control planes it restarts.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bench.simulated.api_server import ApiServer
from tests.roles.kubernetes_node import Node, a_node

from gcluster.lifecycle.cluster.progress import silent
from gcluster.lifecycle.kubernetes.release.build import ensure_program

pytestmark = pytest.mark.kubernetes_api

KEYS = {f"gcluster-{n}": base64.b64encode(bytes([n]) * 32).decode() for n in (1, 2, 3)}
PROGRAM = "kubernetes-encryption.py"


class Plane:
    """A control plane's folder, and the real API server and etcd that its programs call."""

    def __init__(self, root: Path) -> None:
        """Begin with the first key."""
        self.node: Node = a_node(root)
        self.keys("gcluster-1")
        self.api = ApiServer(
            f"--encryption-provider-config={self.file}",
            "--encryption-provider-config-automatic-reload=true",
        )
        kubectl = f"{self.api.folder}/kubectl --kubeconfig={self.api.kubeconfig}"
        self.node.double("kubectl", f'shift; exec {kubectl} "$@"')
        etcd = root / "etcdctl"
        etcd.symlink_to(ensure_program("etcd", silent))
        tool = self.node.write("usr/local/libexec/gcluster/kubernetes-etcd.sh")
        tool.write_text(f'#!/bin/sh\nshift\nexec {etcd} --endpoints={self.api.etcd} "$@"\n')
        tool.chmod(0o755)

    @property
    def file(self) -> Path:
        """Where the keys are."""
        return self.node.root / "etc/kubernetes/gcluster/encryption.yaml"

    def keys(self, *names: str) -> None:
        """Write the keys, as the role's template does; the first one encrypts."""
        each = ", ".join(f"{{name: {name}, secret: {KEYS[name]}}}" for name in names)
        text = f"""\
apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
  - resources: [secrets]
    providers:
      - secretbox: {{keys: [{each}]}}
      - identity: {{}}
"""
        made = self.node.write("etc/kubernetes/gcluster/encryption.yaml.new", text)
        made.rename(made.with_suffix(""))

    def used(self) -> set[str]:
        """Return the names of the keys that etcd's secrets are encrypted by."""
        words = ("get", "/registry/secrets/", "--prefix", "--write-out=json")
        listed = self.node.shell(
            f"{self.node.root}/etcdctl --endpoints={self.api.etcd} {' '.join(words)}"
        )[1]
        values = [base64.b64decode(one["value"]) for one in json.loads(listed).get("kvs", [])]
        return {value.split(b":")[4].decode() for value in values}

    def secret(self, name: str) -> None:
        """Write a secret."""
        words = ("create", "secret", "generic", name, f"--from-literal=word=of-{name}")
        self.api.kubectl(*words)


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    made = Plane(tmp_path_factory.mktemp("plane"))
    with made.api:
        yield made


def word(plane: Plane, name: str) -> Any:
    data = plane.api.kubectl("get", "secret", name, "--output=jsonpath={.data.word}").stdout
    return base64.b64decode(data).decode()


def test_what_is_encrypted_by_the_key_is_left(plane: Plane) -> None:
    for name in ("a", "b", "c"):
        plane.secret(name)
    assert plane.used() == {"gcluster-1"}
    told = "wrote 0 secrets again, by the key gcluster-1\n"
    assert plane.node.run(PROGRAM) == (0, told, "")


def test_all_are_written_again_by_another_key_and_stay_readable(plane: Plane) -> None:
    plane.keys("gcluster-2", "gcluster-1")
    for number in range(120):  # the API server looks at its file each minute
        plane.secret(f"probe-{number}")
        if "gcluster-2" in plane.used():
            break
        time.sleep(1)
    assert plane.used() == {"gcluster-1", "gcluster-2"}
    code, told, errors = plane.node.run(PROGRAM)
    assert (code, errors) == (0, "")
    assert told == f"wrote {3 + number} secrets again, by the key gcluster-2\n"
    assert plane.used() == {"gcluster-2"}
    assert word(plane, "a") == "of-a"


def test_where_the_api_server_does_not_have_the_key_that_is_an_error(plane: Plane) -> None:
    plane.keys("gcluster-3", "gcluster-2")
    code, told, errors = plane.node.run(PROGRAM)
    assert (code, told) == (1, "")
    assert "secrets are not encrypted by gcluster-3 yet" in errors
    assert word(plane, "a") == "of-a"
