"""The first task of role kubernetes, run by a shell: what a host may be that becomes a node."""

from __future__ import annotations

import subprocess
from pathlib import Path

import jinja2
import pytest
import yaml

ANOTHERS = "it is a node of another cluster: kubeadm reset"


def _hindrances(root: Path, folder: Path, role: str, taken: str = "") -> list[str]:
    """Run the task with a folder for /etc/kubernetes, and doubles of ss and systemd-detect-virt."""
    path = root / "roles" / "kubernetes" / "tasks" / "preflight.yml"
    task = yaml.safe_load(path.read_text(encoding="utf-8"))[0]
    text = jinja2.Template(task["ansible.builtin.raw"]).render(kubernetes_role=role)
    programs = folder / "bin"
    programs.mkdir()
    for name, does in (("ss", f'case "$2" in *:{taken or "none"}) echo taken; esac'),
                       ("systemd-detect-virt", "echo docker")):  # fmt: skip
        (programs / name).write_text(f"#!/bin/sh\n{does}\n", encoding="utf-8")
        (programs / name).chmod(0o755)
    done = subprocess.run(
        ["sh", "-c", text.replace("/etc/kubernetes", str(folder / "kubernetes"))],
        capture_output=True, text=True, check=True, env={"PATH": f"{programs}:/usr/bin:/bin"},
    )  # fmt: skip
    found = done.stdout.splitlines()
    return [line for line in found if not line.startswith("its name")]  # this machine's


@pytest.mark.parametrize("role", ["controller", "compute"])
@pytest.mark.parametrize(
    ("files", "said"),
    [
        ((), ""),
        (("kubelet.conf", "gcluster/join.yaml", "manifests/etcd.yaml"), ""),
        (("kubelet.conf",), ANOTHERS),
        (("kubelet.conf", "manifests/kube-apiserver.yaml"), ANOTHERS),
        (("manifests/kube-apiserver.yaml",), "it is a control plane of another cluster"),
    ],
)
def test_a_node_of_another_cluster_is_no_member_of_this_one(
    root: Path, tmp_path: Path, files: tuple[str, ...], said: str, role: str
) -> None:
    for name in files:
        file = tmp_path / "kubernetes" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    found = _hindrances(root, tmp_path, role)
    assert len(found) == (1 if said else 0)
    assert all(line.startswith(said) for line in found)


@pytest.mark.parametrize(("role", "count"), [("controller", 1), ("compute", 0)])
def test_a_port_that_is_taken_is_named_where_the_host_would_need_it(
    root: Path, tmp_path: Path, role: str, count: int
) -> None:
    found = _hindrances(root, tmp_path, role, taken="6443")
    assert found == ["port 6443 is taken by another program: ss -ltnp"] * count
