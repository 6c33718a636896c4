"""A whole `up` on AWS without AWS: the command as a person calls it, against doubles of the cloud.

The engine is the double of the command `pulumi`, moto server stands for AWS, and local nodes for
the machines: a real cloud-init takes the user data of the launch template, and host keys are read
from real consoles. The p5s are simulated, by a catalog of the spec's own: no GPU and no EFA are
there, and the certificate says so. Nobody gets to a machine from outside but by a public address;
more of security groups is not imitated.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.pulumi_double.install import PulumiDouble
from tests.pulumi_double.instances import Instances
from tests.pulumi_double.moto_process import MotoProcess

from .conftest import LiveCluster

pytestmark = [pytest.mark.local, pytest.mark.aws_up]

ROOT = Path(__file__).parents[2]
SPEC = """\
apiVersion: gcluster/v1
name: {name}
owner: ops@example.edu
catalog: [machines.yaml]
sites:
  east:
    provider: aws
    region: us-east-1
    zone_id: use1-az4
    image: ami-1e749f67
    network: {{cidr: {private}, admin_cidrs: [192.0.2.0/24]}}
pools:
  head: {{site: east, role: controller}}
  door: {{site: east, role: login, public_address: true}}
  train: {{site: east, machine: p5.48xlarge, count: 3}}
software: {{distribution: debian-13, slurm: distribution}}
scheduler:
  type: slurm
  partitions:
    train: {{pools: [train], default: true, max_time: 1h}}
users:
  - {{name: ada, uid: 2001}}
smoke: {{allreduce: {{sizes: 8B..1MiB, iterations: 2}}}}
"""
NODES = ["door", "head", "train001", "train002", "train003"]


class Amazon:
    """The cluster, and the doubles that it comes up on."""

    def __init__(self, live: LiveCluster, folder: Path) -> None:
        """Start AWS' double and write the spec."""
        self.live = live
        number = secrets.randbelow(200)
        given = {
            "name": f"aws-double-{live.name}",
            "folder": str(folder / "instances"),
            "private": f"10.{number // 8 + 215}.0.0/16",
            "public": f"198.18.{number}.0/24",
        }
        self.machines = Instances(**given)
        self.machines.lay_networks()
        self.moto = MotoProcess(folder / "moto", nodes=given)
        self.engine = PulumiDouble(
            folder / "pulumi", cloud="moto", endpoint=self.moto.url, region=self.moto.region
        )
        live.environment |= {
            "PATH": f"{self.engine.bin}{os.pathsep}{live.environment['PATH']}",
            "AWS_ENDPOINT_URL": self.moto.url,
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
        }
        live.spec.write_text(SPEC.format(name=live.name, private=given["private"]))
        live.spec.with_name("machines.yaml").write_text(yaml.safe_dump(simulated("p5.48xlarge")))

    def end(self) -> None:
        """Remove all of it."""
        self.moto.end()
        self.machines.clear()


def simulated(name: str) -> dict[str, Any]:
    """Return a catalog that has a machine of gcluster's own as a simulated one."""
    file = ROOT / "schemas/catalog/machines/aws" / f"{name}.yaml"
    catalog: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    catalog["machines"][0]["simulated"] = True
    return catalog


@pytest.fixture(scope="module")
def amazon(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch_module: pytest.MonkeyPatch
) -> Iterator[Amazon]:
    """Give the doubles, and remove them and all machines whatever happens."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch_module.setenv(name, "testing")
    folder = tmp_path_factory.mktemp("aws")
    made = Amazon(LiveCluster(folder), folder)
    try:
        yield made
    finally:
        made.end()


@pytest.fixture(scope="module")
def monkeypatch_module() -> Iterator[pytest.MonkeyPatch]:
    """Give a monkeypatch for the whole module."""
    with pytest.MonkeyPatch.context() as patch:
        yield patch


def kill_tree(process: int) -> None:
    """Kill a process and all that it started, as nothing can be caught or tidied up."""
    for child in _children(process):
        kill_tree(child)
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


def _children(process: int) -> list[int]:
    found: list[int] = []
    for file in Path(f"/proc/{process}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += [int(word) for word in file.read_text().split()]
    return found


def begun(amazon: Amazon, verb: str) -> subprocess.Popen[str]:
    """Start a command in a process group of its own, as a shell does; its events are on stderr."""
    command = [str(Path(sys.executable).with_name("gcluster")), verb, str(amazon.live.spec)]
    return subprocess.Popen(
        [*command, "--yes", "--format", "json"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=amazon.live.environment,
        start_new_session=True,
    )


def killed_by_engine(amazon: Amazon, verb: str, **fault: Any) -> None:
    """Run a command whose whole process group is killed at a moment of the engine."""
    amazon.engine.plant({**fault, "do": "kill-group"})
    running = begun(amazon, verb)
    _, said = running.communicate(timeout=600)
    assert running.returncode == -signal.SIGKILL, said


def killed_at(amazon: Amazon, stage: str, done: int) -> None:
    """Run `up` and kill it when so much of a stage is done; 0: it has begun."""
    running = begun(amazon, "up")
    assert running.stderr is not None
    said = ""
    for line in running.stderr:
        said += line
        event = json.loads(line)
        if event.get("name") == stage and event.get("done", 0) >= done:
            kill_tree(running.pid)
            break
    running.stderr.close()
    assert running.wait(timeout=60) == -signal.SIGKILL, said


INSTANCE = "instance:Instance::.*"
"""Type and name, as faults match them."""


def test_up_that_is_killed_ten_times_comes_to_a_passed_allreduce(amazon: Amazon) -> None:
    killed_by_engine(amazon, "up", number=6)
    killed_by_engine(amazon, "up", number=17)
    killed_by_engine(amazon, "up", match=INSTANCE + "door")
    killed_by_engine(amazon, "up", moment="made", match=INSTANCE + "train002")
    killed_at(amazon, "ready", 0)
    for done in (0, 6, 14, 30):
        killed_at(amazon, "converge", done)
    killed_at(amazon, "smoke", 0)
    result = amazon.live.json("up", str(amazon.live.spec), "--yes")
    assert result["failed_hosts"] == {}
    assert result["verdict"]["verdict"] == "pass"
    assert sorted(amazon.machines.standing().values()) == NODES
    standing = Counter(line.split()[0] for line in amazon.moto.standing())
    assert (standing["InstanceId"], standing["VpcId"], standing["NatGatewayId"]) == (5, 1, 1)


def test_the_certificate_says_that_gpus_and_transport_are_simulated(amazon: Amazon) -> None:
    (file,) = amazon.live.spec.parent.rglob("certificate.json")
    certificate = json.loads(file.read_text(encoding="utf-8"))
    assert certificate["gpus"] == "simulated"
    assert certificate["transport"].endswith("(simulated)")


def test_nobody_gets_to_a_private_node_but_through_the_public_one(amazon: Amazon) -> None:
    said = amazon.live.on("train001", "hostname; whoami").split()
    assert said == ["train001", "admin"]


def test_down_that_is_killed_twice_leaves_nothing_and_no_machine(amazon: Amazon) -> None:
    for _ in range(2):
        killed_by_engine(amazon, "down", moment="deleted", number=3)
    amazon.live.gcluster("down", str(amazon.live.spec), "--yes")
    assert amazon.moto.standing() == []
    assert amazon.machines.standing() == {}
