"""How much later a training starts by gcluster than by a plain batch script with `srun`.

The cluster and the workload are those of examples/first-model.yaml. Three ways are taken in turn,
each on idle nodes: a plain script by `sbatch`, the compiled script by `sbatch`, and `gcluster run`.
Measured is the time from the command until the last process of the first step has started, read
from the processes themselves: the nodes have this machine's clock. The medians are compared.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from ..timing import Result, arguments, report, with_bytecode
from .recovery import Training, until

OVERHEAD_SECONDS = 1.0
NODES = 3
PROGRAM = """import os, pathlib, time
there = pathlib.Path("/scratch/started")
(there / os.environ["SLURM_PROCID"]).write_text(repr(time.time()))
"""
"""What each process does, in place of the example's training."""
PLAIN = f"""#!/bin/bash
#SBATCH --nodes={NODES}
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --exclusive
#SBATCH --mem=0
#SBATCH --chdir=/scratch
export MASTER_ADDR=$(hostname) MASTER_PORT=29500
exec srun --cpu-bind=none bash -c 'RANK=$SLURM_PROCID exec python3 train.py'
"""
"""The example's job as one writes it by hand."""


class Start(Training):
    """The example's cluster, its workload's program one that notes when it starts."""

    def prepare(self) -> None:
        """Bring the cluster up, with the two scripts and the program in the shared folder."""
        self.up()
        (self.scratch / "train.py").write_text(PROGRAM, encoding="utf-8")
        (self.scratch / "plain.sh").write_text(PLAIN, encoding="utf-8")
        compiled = self.gcluster("run", "letters", "--dry-run")
        (self.scratch / "compiled.sh").write_text(compiled, encoding="utf-8")
        self.on_head("install -d -m 1777 /scratch/started")

    def sbatch(self, script: str) -> None:
        """Submit a script as the example's user."""
        self.on_head(f"cd /scratch && su ada -s /bin/sh -c 'sbatch {script}'")

    def by_gcluster(self) -> None:
        """Submit the workload as its user does."""
        self.gcluster("run", "letters", "--user", "ada", "--detach")

    def seconds(self, submit: Callable[[], None]) -> float:
        """Return the seconds from a command until the last process of its job has started."""
        until(lambda: self.on_head("squeue -h; sinfo -h -t idle -o %D").strip() == "4", "idle")
        self.on_head("rm -f /scratch/started/*")
        began = time.time()
        submit()
        there = self.scratch / "started"
        until(lambda: self._times(there) and len(self._times(there)) == NODES, "its processes")
        return max(self._times(there)) - began

    @staticmethod
    def _times(folder: Path) -> list[float]:
        found = [path.read_text(encoding="utf-8") for path in folder.iterdir()]
        return [float(text) for text in found if text]


def measure(folder: Path, environment: dict[str, str], rounds: int) -> dict[str, list[float]]:
    """Return the seconds of each way, of each round; one round before them isn't counted."""
    site = Start(folder, environment)
    ways: dict[str, Callable[[], None]] = {
        "plain": lambda: site.sbatch("plain.sh"),
        "compiled": lambda: site.sbatch("compiled.sh"),
        "run": site.by_gcluster,
    }
    found: dict[str, list[float]] = {name: [] for name in ways}
    try:
        site.prepare()
        for number in range(rounds + 1):
            for name, submit in ways.items():
                seconds = site.seconds(submit)
                print(f"{name} {seconds:.2f} s", file=sys.stderr)
                if number:
                    found[name].append(seconds)
    finally:
        site.end()
    return found


def main() -> int:
    """Measure, and report against the limit."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--rounds", type=int, default=7, help="jobs of each way that are counted")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gcluster-bench-") as name:
        found = measure(Path(name), with_bytecode(), options.rounds)
    middle = {name: statistics.median(values) for name, values in found.items()}
    results = [
        Result(name="plain script, until its processes start", value=middle["plain"], unit="s"),
        Result(
            name="compiled script, more than the plain one",
            value=middle["compiled"] - middle["plain"],
            unit="s",
            limit=OVERHEAD_SECONDS,
        ),
        Result(
            name="gcluster run, more than the plain one",
            value=middle["run"] - middle["plain"],
            unit="s",
            limit=OVERHEAD_SECONDS,
        ),
    ]
    return report(
        "start of a job on local nodes, by gcluster and by hand",
        results,
        as_json=options.json,
        ratios=options.ratios,
    )


if __name__ == "__main__":
    sys.exit(main())
