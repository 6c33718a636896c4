"""A cloud of doubles that a whole cluster comes up on, and how its runs are killed."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Protocol, Self

import pytest
import yaml
from tests.pulumi_double.install import PulumiDouble
from tests.pulumi_double.instances import Instances

from gcluster.stacks.provider import ProviderError

from .conftest import LiveCluster

ROOT = Path(__file__).parents[2]
NODES = ["door", "head", "train001", "train002", "train003"]
"""What each cloud's spec requests."""


SOFTWARE = """\
software: {{distribution: debian-13, slurm: distribution}}
scheduler:
  type: slurm
  partitions:
    train: {{pools: [train], default: true, max_time: 1h}}
users:
  - {{name: ada, uid: 2001}}
smoke: {{allreduce: {{sizes: 8B..1MiB, iterations: 2}}}}
"""
"""What each cloud's spec ends with."""


class OwnDouble(Protocol):
    """The process that simulates a cloud."""

    def existing(self) -> list[str]:
        """Return what exists there."""
        ...

    def end(self) -> None:
        """End it."""
        ...


class CloudDouble:
    """The cluster, and what is under it: local nodes for machines, a double for the engine."""

    engine: PulumiDouble
    cloud: OwnDouble
    """Both are set by the test that starts the cloud's own double."""

    def __init__(self, live: LiveCluster, folder: Path, cloud: str) -> None:
        """Lay the networks of the machines, where another run's are not."""
        self.live = live
        for number in secrets.SystemRandom().sample(range(215, 240), 25):
            self.given = {
                "name": f"{cloud}-double-{live.name}",
                "folder": str(folder / "instances"),
                "private": f"10.{number}.0.0/16",
                "public": f"198.18.{number}.0/24",
            }
            self.machines = Instances(**self.given)
            try:
                self.machines.lay_networks()
            except ProviderError as error:
                self.machines.clear()
                if "already used" not in str(error):
                    raise
            else:
                return
        pytest.fail("25 runs have networks here already")

    def write(self, spec: str, machine: str, engine: PulumiDouble, **environment: str) -> None:
        """Write the spec, with a machine of its catalog as a simulated one, and the environment.

        Args:
            spec: text with {name} and {private}; SOFTWARE is added.
            machine: CLOUD/NAME of gcluster's own catalog.
            engine: the double of the command `pulumi`.
            environment: how the cloud's double is found.
        """
        self.engine = engine
        path = f"{engine.bin}{os.pathsep}{self.live.environment['PATH']}"
        self.live.environment |= {"PATH": path, **environment}
        self.live.spec.write_text(
            (spec + SOFTWARE).format(name=self.live.name, private=self.given["private"])
        )
        file = ROOT / f"schemas/catalog/machines/{machine}.yaml"
        catalog: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
        catalog["machines"][0]["simulated"] = True
        self.live.spec.with_name("machines.yaml").write_text(yaml.safe_dump(catalog))

    def existing(self) -> list[str]:
        """Return what exists in the cloud."""
        return self.cloud.existing()

    def __enter__(self) -> Self:
        """Give it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the double and all machines, whatever happened."""
        self.cloud.end()
        self.machines.clear()

    def comes_up_in_spite_of_kills(self) -> None:
        """Kill `up` as nodes start, in roles and in the AllReduce; then let it come to its end."""
        self.killed_at("ready", 0)
        for done in (0, 6, 14, 30):
            self.killed_at("converge", done)
        self.killed_at("smoke", 0)
        result = self.live.json("up", str(self.live.spec), "--yes")
        assert result["failed_hosts"] == {}
        assert result["verdict"]["verdict"] == "pass"
        assert sorted(self.machines.existing().values()) == NODES

    def check_certificate_is_simulated(self) -> None:
        """Look at what the certificate says of GPUs and transport."""
        (file,) = self.live.spec.parent.rglob("certificate.json")
        certificate = json.loads(file.read_text(encoding="utf-8"))
        assert certificate["gpus"] == "simulated"
        assert certificate["transport"].endswith("(simulated)")

    def goes_down_in_spite_of_kills(self) -> None:
        """Kill `down` twice; then it must leave nothing in the cloud, and no machine."""
        for _ in range(2):
            self.killed_by_engine("down", {"moment": "deleted", "number": 3})
        self.live.gcluster("down", str(self.live.spec), "--yes")
        assert self.existing() == []
        assert self.machines.existing() == {}

    def begun(self, verb: str) -> subprocess.Popen[str]:
        """Start a command in a process group of its own; its events are on stderr."""
        command = [str(Path(sys.executable).with_name("gcluster")), verb, str(self.live.spec)]
        return subprocess.Popen(
            [*command, "--yes", "--format", "json"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=self.live.environment,
            start_new_session=True,
        )

    def killed_by_engine(self, verb: str, *faults: dict[str, Any]) -> None:
        """Run a command until its process group was killed at each of these moments of the engine.

        What is made side by side may come in any order, so the faults do too.
        """
        ended = len(self.engine.struck()) + len(faults)
        self.engine.plant(*({**fault, "do": "kill-group"} for fault in faults))
        while len(self.engine.struck()) < ended:
            running = self.begun(verb)
            _, output = running.communicate(timeout=600)
            assert running.returncode == -signal.SIGKILL, output

    def killed_at(self, stage: str, done: int) -> None:
        """Run `up` and kill it when so much of a stage is done; 0: it has begun."""
        running = self.begun("up")
        assert running.stderr is not None
        output = ""
        for line in running.stderr:
            output += line
            event = json.loads(line)
            if event.get("name") == stage and event.get("done", 0) >= done:
                _kill_tree(running.pid)
                break
        running.stderr.close()
        assert running.wait(timeout=60) == -signal.SIGKILL, output


def _kill_tree(process: int) -> None:
    """Kill a process and all that it started, as nothing can be caught or tidied up."""
    for child in _children(process):
        _kill_tree(child)
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


def _children(process: int) -> list[int]:
    found: list[int] = []
    for file in Path(f"/proc/{process}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += [int(word) for word in file.read_text().split()]
    return found
