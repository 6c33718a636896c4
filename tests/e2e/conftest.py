"""A cluster of its own for the end-to-end test: own name, own folders, never anybody else's."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .slurm_site import Site

SPEC = """\
apiVersion: gcluster/v1
name: {name}
sites: {{here: {{provider: local}}}}
pools:
  head: {{site: here, role: controller}}
  gpu: {{site: here, machine: sim.h100x8, count: {count}}}
scheduler:
  type: slurm
  partitions:
    train: {{pools: [gpu], default: true, max_time: 1h}}
users:
  - {{name: ada, uid: 2001}}
smoke: {{allreduce: {{sizes: 8B..8MiB, iterations: 2}}}}
"""


ACCOUNTS = "accounts: {nlp: {share: 60, users: [ada]}}"


class LiveCluster:
    """Drives the installed command on one spec and looks at what is left on the machine."""

    def __init__(self, folder: Path) -> None:
        """Prepare folders; nothing is started."""
        self.name = f"e2e-{secrets.token_hex(3)}"
        self.spec = folder / "cluster.yaml"
        self.data = folder / "data"
        self.config = folder / "config"
        self.environment = {
            **os.environ,
            "XDG_DATA_HOME": str(self.data),
            "XDG_CONFIG_HOME": str(self.config),
            "NO_COLOR": "1",
        }
        self.write_spec(nodes=4)

    def write_spec(self, *, nodes: int) -> None:
        """Write the spec with so many GPU nodes."""
        self.spec.write_text(SPEC.format(name=self.name, count=nodes))

    def gcluster(self, *arguments: str, expect: int | None = 0) -> subprocess.CompletedProcess[str]:
        """Run the command as a person would; `expect` is the exit code, None for any."""
        command = [str(Path(sys.executable).with_name("gcluster")), *arguments]
        done = subprocess.run(
            command, capture_output=True, text=True, env=self.environment, timeout=1800, check=False
        )
        output = f"$ gcluster {' '.join(arguments)}\n{done.stdout}{done.stderr}"
        sys.stdout.write(output)
        assert expect is None or done.returncode == expect, output
        assert "Traceback" not in done.stderr, output
        return done

    def stop_up(
        self, number: int, *, stage: str = "converge", after_steps: int = 0
    ) -> tuple[int, str]:
        """Send a signal to an `up` when so many steps of a stage are done; 0: it has begun.

        Returns its exit and output.
        """
        command = [str(Path(sys.executable).with_name("gcluster")), "up", str(self.spec), "--yes"]
        running = subprocess.Popen(
            [*command, "--format", "json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment,
        )
        assert running.stdout is not None
        assert running.stderr is not None
        output = ""
        for line in running.stderr:
            output += line
            event = json.loads(line)
            if event.get("name") == stage and event.get("done", 0) >= after_steps:
                running.send_signal(number)
                break
        output += running.stderr.read() + running.stdout.read()
        return running.wait(timeout=60), output

    def json(self, *arguments: str, expect: int | None = 0) -> Any:
        """Run with --format json and return the document on stdout."""
        return json.loads(self.gcluster(*arguments, "--format", "json", expect=expect).stdout)

    def on(self, node: str, command: str) -> str:
        """Run a shell command on a node over the pinned SSH connection."""
        return self.gcluster("ssh", str(self.spec), node, "--", command).stdout

    def stamp_times(self) -> dict[tuple[str, str], str]:
        """Return (node, step) -> the stamp's modification time and content, for every node."""
        nodes = [node["name"] for node in self.json("status", str(self.spec), expect=None)["nodes"]]
        ask = (
            "cd /var/lib/gcluster/stamps && for s in *; do echo $s $(stat -c %y $s) $(cat $s); done"
        )
        return {
            (node, line.split()[0]): line
            for node in nodes
            for line in self.on(node, ask).splitlines()
        }

    def engine(self, *arguments: str) -> list[str]:
        """List this cluster's objects in podman; one line each."""
        label = f"label=gcluster.cluster={self.name}"
        done = subprocess.run(
            ["podman", *arguments, "--filter", label, "--format", "{{.ID}}{{.Name}}"]
            if arguments[0] == "network"
            else ["podman", *arguments, "--filter", label, "-q"],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        return done.stdout.split()

    def left_behind(self) -> dict[str, list[str]]:
        """Return everything of this cluster that is still on the machine, by kind."""
        keys = [
            str(path)
            for root in (self.data, self.config)
            for path in root.rglob("*")
            if path.is_file() and (path.suffix == ".key" or path.name.startswith("id_"))
        ]
        return {
            "containers": self.engine("ps", "--all"),
            "networks": self.engine("network", "ls"),
            "volumes": self.engine("volume", "ls"),
            "keys": keys,
            "processes": self.processes(),
        }

    def processes(self, mentioning: str = "") -> list[str]:
        """Return the command lines of this cluster's processes on this machine."""
        lines = [_command_line(process) for process in Path("/proc").iterdir()]
        return [
            line
            for line in lines
            if (self.name in line or str(self.data) in line) and mentioning in line
        ]


def until(holds: Callable[[], bool], seconds: float = 60) -> None:
    """Return when something holds; fail when it doesn't in time."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.3)


def _command_line(process: Path) -> str:
    if not process.name.isdigit() or int(process.name) == os.getpid():
        return ""
    try:
        return (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveCluster]:
    """A cluster that is taken down whatever happens."""
    cluster = LiveCluster(tmp_path_factory.mktemp("e2e"))
    yield cluster
    cluster.gcluster("down", str(cluster.spec), "--yes", expect=None)


@pytest.fixture(scope="session")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveCluster]:
    """A controller with the accounting database and two nodes, up; several files share it."""
    cluster = LiveCluster(tmp_path_factory.mktemp("pair"))
    cluster.write_spec(nodes=2)
    cluster.spec.write_text(
        cluster.spec.read_text().replace("type: slurm", f"type: slurm\n  {ACCOUNTS}")
    )
    cluster.gcluster("up", str(cluster.spec), "--yes")
    yield cluster
    cluster.gcluster("down", str(cluster.spec), "--yes", expect=None)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The Slurm site that several files of tests share; it is taken down whatever happens."""
    from .slurm_site import Site  # noqa: PLC0415  # it needs this file

    cluster = LiveCluster(tmp_path_factory.mktemp("site"))
    yield Site(cluster)
    cluster.gcluster("down", str(cluster.spec), "--yes", expect=None)


def made_bundle(cluster: LiveCluster) -> Path:
    """Make a bundle of all that the spec needs in the spec's folder."""
    out = cluster.spec.parent / "bundle"
    began = time.monotonic()
    made = cluster.json("bundle", str(cluster.spec), "--out", str(out))
    sys.stdout.write(f"{made['packages']} packages, {made['size']} bytes, ")
    sys.stdout.write(f"{time.monotonic() - began:.0f} s\n")
    return out


@pytest.fixture
def copy(bundle: Path, tmp_path: Path) -> Iterator[Path]:
    """A copy of the module's bundle that a test may damage."""
    made = tmp_path / "copy"
    shutil.copytree(bundle, made)
    yield made
    shutil.rmtree(made)
