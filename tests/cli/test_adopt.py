"""`gcluster adopt`: a spec of what runs, and a list of what it doesn't say."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

Run = Callable[..., Any]
CASES = Path(__file__).parent.parent / "cases" / "adopt"


@pytest.mark.parametrize(
    "words",
    [
        ("slurm", "slurm/scontrol.txt", "--gpu", "H200"),
        ("slurm", "slurm/slurm.conf"),
        ("ansible", "ansible/hosts.ini"),
        ("ansible", "ansible/hosts.yaml"),
        ("parallelcluster", "parallelcluster/p5.yaml", "--zone-id", "use1-az4"),
        ("cluster-toolkit", "toolkit/ml-slurm.yaml", "--var", "project_id=acme"),
    ],
)
def test_the_spec_that_is_written_is_right(
    run: Run, tmp_path: Path, words: tuple[str, ...]
) -> None:
    spec = tmp_path / "cluster.yaml"
    word, file, *more = words
    done = run("adopt", word, str(CASES / file), *more, "--output", str(spec))
    assert done.exit_code == 0, done.stdout + done.stderr
    assert run("validate", str(spec)).exit_code == 0
    assert "not carried over:" in done.stdout
    assert "# Not carried over" in spec.read_text()
    everything = done.stdout + "".join(path.read_text() for path in tmp_path.iterdir())
    assert "planted-secret" not in everything


def test_the_inventory_is_read_as_ansible_reads_it(run: Run, tmp_path: Path) -> None:
    spec = tmp_path / "cluster.yaml"
    run("adopt", "ansible", str(CASES / "ansible" / "hosts.ini"), "--output", str(spec))
    data = yaml.safe_load(spec.read_text())
    assert data["sites"]["here"]["ssh"] == {
        "user": "ops", "key": "~/.ssh/cluster", "bastion": "ops@jump.example.org",
    }  # fmt: skip
    assert data["pools"]["gpu_h"]["hosts"][1] == {
        "name": "h002", "address": "10.2.2.2", "user": "admin", "port": 2222,
    }  # fmt: skip
    assert data["pools"]["gpu_a"]["hosts"] == ["a001", "a002", "a003"]


def test_variables_of_the_group_that_kubespray_makes_itself_are_carried(
    run: Run, tmp_path: Path
) -> None:
    """As of kubespray 2.27: its sample inventory has no group k8s_cluster, but group_vars of it."""
    folder = tmp_path / "inventory" / "group_vars" / "k8s_cluster"
    folder.mkdir(parents=True)
    (folder / "k8s-cluster.yml").write_text(
        "kube_network_plugin: calico\nkube_pods_subnet: 10.233.64.0/18\n"
    )
    (tmp_path / "inventory" / "inventory.ini").write_text(
        "[kube_control_plane]\nnode1 ansible_host=10.3.0.1\n\n"
        "[kube_node]\nnode2 ansible_host=10.3.0.2\n"
    )
    spec = tmp_path / "cluster.yaml"
    run("adopt", "kubespray", str(tmp_path / "inventory"), "--output", str(spec))
    scheduler = yaml.safe_load(spec.read_text())["scheduler"]
    assert (scheduler["cni"], scheduler["pod_cidr"]) == ("calico", "10.233.64.0/18")


def test_no_script_of_an_inventory_is_run(run: Run, tmp_path: Path) -> None:
    script = tmp_path / "inventory.py"
    script.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\necho '{{}}'\n")
    script.chmod(0o755)
    done = run("adopt", "ansible", str(script), "--output", str(tmp_path / "cluster.yaml"))
    assert done.exit_code == 64
    assert not (tmp_path / "ran").exists()


def test_scontrol_is_queried_where_no_file_is_given(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    lines = (CASES / "slurm" / "scontrol.txt").read_text()
    (tmp_path / "all").write_text(lines)
    (programs / "scontrol").write_text(f"#!/bin/sh\ncat {tmp_path}/all\n")
    (programs / "scontrol").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    spec = tmp_path / "cluster.yaml"
    assert run("adopt", "slurm", "--gpu", "H200", "--output", str(spec)).exit_code == 0
    assert yaml.safe_load(spec.read_text())["name"] == "hopper-2"


def test_what_needs_a_hand_is_reported_and_the_exit_code_is_that_of_a_wrong_spec(
    run: Run, tmp_path: Path
) -> None:
    file = CASES / "parallelcluster" / "p5.yaml"
    argv = ("adopt", "parallelcluster", str(file), "--output", str(tmp_path / "c.yaml"))
    done = run(*argv, "--format", "json")
    assert done.exit_code == 2
    answer = json.loads(done.stdout)
    assert "GC121" in {found["code"] for found in answer["findings"]}
    assert {"where", "why", "kind"} == set(answer["not_carried"][0])
    assert set(answer["settings"]) == {"carried", "replaced", "lost", "unfinished"}


def test_a_file_that_is_there_is_left_as_it_is(run: Run, tmp_path: Path) -> None:
    (tmp_path / "machines.yaml").write_text("mine")
    argv = ("adopt", "ansible", str(CASES / "ansible" / "hosts.yaml"))
    done = run(*argv, "--output", str(tmp_path / "cluster.yaml"))
    assert done.exit_code == 1
    assert [path.name for path in tmp_path.iterdir()] == ["machines.yaml"]
    assert (tmp_path / "machines.yaml").read_text() == "mine"


@pytest.mark.parametrize(
    "words",
    [
        ("slurm", "missing.txt"),
        ("slurm", "--host", "-oProxyCommand=x"),
        ("ansible", "missing.ini"),
        ("parallelcluster", "missing.yaml"),
        ("parallelcluster", "broken.yaml"),
        ("cluster-toolkit", "broken.yaml"),
        ("cluster-toolkit", str(CASES / "toolkit" / "ml-slurm.yaml")),
        ("cluster-toolkit", str(CASES / "toolkit" / "ml-slurm.yaml"), "--var", "x"),
    ],
)
def test_what_can_not_be_read_is_reported_without_a_traceback(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.yaml").write_text("a: [\n")
    done = run("adopt", *words)
    assert done.exit_code == 64, done.stderr
    assert "GC949" not in done.stderr
    assert not (tmp_path / "cluster.yaml").exists()
