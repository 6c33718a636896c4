"""A real API server's words of a node, by kubectl's templates: what is read, and what is done."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest
from bench.simulated.api_server import ApiServer

from gcluster.lifecycle.kubernetes.kubectl import read_rows, row_template
from gcluster.lifecycle.kubernetes.observe import NODE_FIELDS, node_seen

pytestmark = pytest.mark.kubernetes_api

PROGRAM = Path(__file__).parents[3] / "roles/kubernetes/files/libexec/kubernetes-startup.py"
TAINT = "gcluster.local/startup"
LABELS = {"gcluster.local/pool": "gpu", "awaits.gcluster.local/nvidia.com_gpu": "true"}


@pytest.fixture(scope="module")
def api() -> Iterator[Any]:
    """Give a running API server, with nothing in it."""
    with ApiServer() as server:
        yield server


def register(api: Any, name: str, gpus: str, **conditions: str) -> None:
    """Register a node as a kubelet of ours does, and say how it is."""
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": LABELS},
        "spec": {"taints": [{"key": TAINT, "effect": "NoSchedule"}]},
    }
    assert api.apply([node]).returncode == 0
    message = [{"type": t, "status": s, "message": "link 3"} for t, s in conditions.items()]
    status = {"allocatable": {"cpu": "8", "nvidia.com/gpu": gpus}, "conditions": message}
    patch = json.dumps({"status": status})
    api.kubectl("patch", "node", name, "--subresource=status", "--type=merge", f"--patch={patch}")


def program(api: Any) -> list[str]:
    """Return the words that run the program of control planes against that server."""
    text = PROGRAM.read_text(encoding="utf-8")
    for mine, there in (
        ('"/etc/kubernetes/admin.conf"', f'"{api.kubeconfig}"'),
        (', "--server=https://localhost:6443"', ""),
        ('"kubectl"', f'"{api.folder}/kubectl"'),
    ):
        assert mine in text
        text = text.replace(mine, there)
    return ["python3", "-c", text]


def looked(api: Any) -> str:
    """Have it look once; return what it printed."""
    home = {**os.environ, "HOME": str(api.folder)}
    words = [*program(api), "--once"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=home)
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def watching(api: Any) -> Iterator[IO[str]]:
    """Have it watch; give what it prints."""
    home = {**os.environ, "HOME": str(api.folder)}
    with subprocess.Popen(program(api), stdout=subprocess.PIPE, text=True, env=home) as running:
        assert running.stdout is not None
        yield running.stdout
        running.terminate()


def test_a_node_loses_its_taint_when_its_plugin_registers(api: Any) -> None:
    with watching(api) as lines:
        register(api, "gpu003", "0", Ready="True")
        assert seen(api)["gpu003"].awaits == ("nvidia.com/gpu",)
        register(api, "gpu003", "8", Ready="True")
        assert lines.readline() == "gpu003 takes pods: its devices are there\n"
    assert seen(api)["gpu003"].awaits == ()


def seen(api: Any) -> dict[str, Any]:
    """Return the nodes as `status` reads them."""
    template = f"--output=jsonpath={row_template(list(NODE_FIELDS.values()))}"
    text = api.kubectl("get", "nodes", template).stdout
    return {row["name"]: node_seen(row) for row in read_rows(text, list(NODE_FIELDS))}


def test_a_starting_node_is_distinguished_from_one_that_has_its_devices(api: Any) -> None:
    register(api, "gpu001", "0", Ready="True")
    register(api, "gpu002", "8", Ready="True", AcceleratedHardwareReady="False")
    nodes = seen(api)
    assert (nodes["gpu001"].ready, nodes["gpu001"].awaits) == (True, ("nvidia.com/gpu",))
    assert nodes["gpu002"].unfit == "AcceleratedHardwareReady: link 3"
    assert nodes["gpu001"].unfit == ""
    assert looked(api).splitlines() == [
        "gpu001 waits for nvidia.com/gpu",
        "gpu002 takes pods: its devices are there",
    ]
    nodes = seen(api)
    assert (nodes["gpu001"].awaits, nodes["gpu002"].awaits) == (("nvidia.com/gpu",), ())
