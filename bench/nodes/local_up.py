"""How long a local cluster takes: from nothing to a passed AllReduce, and again with nothing to do.

Uses a cluster name and state of its own and takes the cluster down at the end, also on failure.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ..timing import Result, arguments, report, with_bytecode

NODES = 4
UP_SECONDS = 60.0
AGAIN_SECONDS = 3.0
IMAGE_SECONDS = 200.0


def spec_text(name: str, nodes: int = NODES) -> str:
    """Return a local cluster: one controller, and nodes with eight simulated GPUs each."""
    return f"""apiVersion: gcluster/v1
name: {name}
sites: {{here: {{provider: local}}}}
pools:
  head: {{site: here, role: controller}}
  gpu: {{site: here, machine: sim.h100x8, count: {nodes}}}
scheduler: {{type: slurm}}
"""


def run(*arguments_: str, log: Path, environment: dict[str, str]) -> float:
    """Run one gcluster command; return its seconds. What it printed is in `log`.

    Raises:
        RuntimeError: it failed; the message is the end of what it printed.
    """
    gcluster = str(Path(sys.executable).parent / "gcluster")
    began = time.perf_counter()
    with log.open("w", encoding="utf-8") as out:
        done = subprocess.run(
            [gcluster, *arguments_], check=False, stdout=out, stderr=out, env=environment
        )
    seconds = time.perf_counter() - began
    if done.returncode:
        raise RuntimeError(
            f"gcluster {' '.join(arguments_)} ended with {done.returncode}:\n"
            + "\n".join(log.read_text(encoding="utf-8").splitlines()[-20:])
        )
    return seconds


def empty_image_store(folder: Path) -> dict[str, str]:
    """Return what makes podman keep its images in `folder`, so that none is there yet."""
    configuration = folder / "storage.conf"
    configuration.write_text(
        f'[storage]\ndriver = "overlay"\ngraphroot = "{folder}/images"\nrunroot = "{folder}/run"\n',
        encoding="utf-8",
    )
    return {
        "CONTAINERS_STORAGE_CONF": str(configuration),
        "XDG_CACHE_HOME": str(folder / "cache"),
    }


def measure(folder: Path, environment: dict[str, str], text: str) -> list[float]:
    """Return the seconds of a spec's first `up`, of one with an existing image, and of one more.

    The stage lines of the second, which show where the time goes, are shown on standard error.
    """
    spec, log = folder / "bench.yaml", folder / "log"
    spec.write_text(text, encoding="utf-8")
    up = ("up", str(spec), "--yes")
    down = ("down", str(spec), "--yes")
    try:
        first = run(*up, log=log, environment=environment)
        run(*down, log=log, environment=environment)
        second = run(*up, log=log, environment=environment)
        print(log.read_text(encoding="utf-8"), file=sys.stderr)
        again = run(*up, log=log, environment=environment)
    finally:
        run(*down, log=log, environment=environment)
    return [first, second, again]


def main() -> int:
    """Measure, and report against the limits."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--image", action="store_true", help="also build the image, from nothing")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gcluster-bench-") as name:
        folder = Path(name)
        environment = with_bytecode()
        if options.image:
            environment |= empty_image_store(folder)
        first, up, again = measure(folder, environment, spec_text(f"bench-{os.getpid()}"))
        if options.image:
            subprocess.run(["podman", "rmi", "--all", "--force"], check=False, env=environment)
    built = Result(
        name="image build (first up less second)", value=first - up, unit="s", limit=IMAGE_SECONDS
    )
    results = [
        *([built] if options.image else []),
        Result(name=f"up, 1+{NODES} nodes, AllReduce passed", value=up, unit="s", limit=UP_SECONDS),
        Result(name="up again, nothing to do", value=again, unit="s", limit=AGAIN_SECONDS),
    ]
    return report(
        "local cluster, image cached", results, as_json=options.json, ratios=options.ratios
    )


if __name__ == "__main__":
    sys.exit(main())
