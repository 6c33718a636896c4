"""How long a training makes no step when a node is lost: with a spare, without, on those left.

The cluster and the workload are those of examples/first-model.yaml. A node that computes is killed;
measured is the time until the log has the next step, median of so many rounds. A spare takes its
place at once; without one the job is queued again, and a free node is there; with `min_nodes` four
nodes become three. Each round's node comes back before the next one.
"""

from __future__ import annotations

import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

from ..timing import Result, arguments, report, with_bytecode
from .local_up import run

EXAMPLE = Path(__file__).parents[2] / "examples" / "first-model.yaml"
RECOVERY_SECONDS = 30.0
GIVE_UP_SECONDS = 300.0
NODES = 4
WITH_SPARE, WITHOUT, SHRINKS = "letters", "no-spare", "shrinks"
"""The example's workload, the same without its spare, and on all four nodes or three of them."""
STEP = re.compile(r"^step \d+ loss", re.MULTILINE)


def until(ready: object, what: str) -> None:
    """Return when a call returns something true.

    Raises:
        RuntimeError: it never did.
    """
    end = time.monotonic() + GIVE_UP_SECONDS
    while time.monotonic() < end:
        if callable(ready) and ready():
            return
        time.sleep(0.2)
    raise RuntimeError(f"{what}: not within {GIVE_UP_SECONDS:.0f} s")


class Training:
    """The example's cluster under a name of its own, and its workload."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        """Write the spec; nothing is up yet."""
        self.cluster = f"recovery-{os.getpid()}"
        self.spec, self.output = folder / "recovery.yaml", folder / "log"
        self.environment = environment
        spec = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))
        workload = spec["workloads"][WITH_SPARE] | {"variables": {"STEPS": "100000"}}
        alone = {key: value for key, value in workload.items() if key != "spares"}
        spec |= {
            "name": self.cluster,
            "workloads": {
                WITH_SPARE: workload,
                WITHOUT: alone,
                SHRINKS: alone | {"nodes": NODES, "min_nodes": NODES - 1},
            },
        }
        self.spec.write_text(yaml.safe_dump(spec, sort_keys=False), encoding="utf-8")
        self.scratch = Path()
        self.workload = self.job = ""

    def gcluster(self, *words: str) -> str:
        """Run a command of gcluster on the cluster; return what it printed."""
        run(words[0], str(self.spec), *words[1:], log=self.output, environment=self.environment)
        return self.output.read_text(encoding="utf-8")

    def on_head(self, line: str) -> str:
        """Run a shell line on the controller."""
        words = ["podman", "exec", f"gcluster-{self.cluster}-head", "sh", "-c", line]
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout

    def up(self) -> None:
        """Bring the cluster up."""
        self.gcluster("up", "--yes")
        volume = f"gcluster-{self.cluster}-here-scratch"
        words = ["podman", "volume", "inspect", "--format", "{{.Mountpoint}}", volume]
        where = subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()
        self.scratch = Path(where)

    def start(self, workload: str) -> None:
        """Start the training."""
        shutil.copy(EXAMPLE.with_suffix("") / "train.py", self.scratch)
        self.workload = workload
        said = self.gcluster("run", workload, "--user", "ada", "--detach")
        self.job = re.findall(r"job (\d+) is queued", said)[0]
        until(lambda: self.log().count("saved") > 0, "a checkpoint")

    def log(self) -> str:
        """Return the training's log."""
        path = self.scratch / f"{self.workload}-{self.job}.log"
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def lose_a_node(self) -> float:
        """Kill the second node of the step; return the seconds until the next step."""
        listed = f"scontrol show hostnames $(squeue -h -s -j {self.job} -o '%j %N' | "
        victim = self.on_head(listed + "sed -n 's/^attempt-[0-9]* //p')").split()[1]
        parts = len(self.log().split("resuming from /"))
        began = time.monotonic()
        subprocess.run(
            ["podman", "kill", f"gcluster-{self.cluster}-{victim}"], check=True, capture_output=True
        )

        def goes_on() -> bool:
            found = self.log().split("resuming from /")
            return len(found) > parts and bool(STEP.search(found[-1]))

        until(goes_on, "the next step")
        return time.monotonic() - began

    def restore(self) -> None:
        """End the job, and bring all nodes back."""
        self.on_head(f"scancel {self.job}")
        for node in range(1, NODES + 1):
            words = ["podman", "start", f"gcluster-{self.cluster}-gpu{node:03d}"]
            subprocess.run(words, check=True, capture_output=True)
        # While a job ends on the node that was lost, Slurm may already call that one idle.
        until(lambda: not self.on_head("squeue -h").strip(), "the end of the job")
        until(lambda: self.on_head("sinfo -h -t idle -o %D").strip() == str(NODES), "idle nodes")

    def end(self) -> None:
        """Take the cluster down with its data."""
        self.gcluster("down", "--yes", "--delete-data", "scratch")


def measure(folder: Path, environment: dict[str, str], rounds: int) -> dict[str, list[float]]:
    """Return workload -> the seconds without a step, of each round."""
    training = Training(folder, environment)
    found: dict[str, list[float]] = {WITH_SPARE: [], WITHOUT: [], SHRINKS: []}
    try:
        training.up()
        for workload, seconds in found.items():
            for _ in range(rounds):
                training.start(workload)
                seconds.append(training.lose_a_node())
                print(f"{workload}: {seconds[-1]:.1f} s", file=sys.stderr)
                training.restore()
    finally:
        training.end()
    return found


def main() -> int:
    """Measure, and report against the limit."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--rounds", type=int, default=3, help="nodes that are lost, one by one")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gcluster-bench-") as name:
        found = measure(Path(name), with_bytecode(), options.rounds)
    results = []
    ways = {WITH_SPARE: "a spare there", WITHOUT: "queued again", SHRINKS: "on the nodes left"}
    for workload, how in ways.items():
        seconds = found[workload]
        for value, what in ((statistics.median(seconds), "median"), (max(seconds), "longest")):
            results.append(
                Result(
                    name=f"node lost until the next step, {how}, {what} of {len(seconds)}",
                    value=value,
                    unit="s",
                    limit=RECOVERY_SECONDS,
                )
            )
    return report(
        "training on local nodes, a node killed",
        results,
        as_json=options.json,
        ratios=options.ratios,
    )


if __name__ == "__main__":
    sys.exit(main())
