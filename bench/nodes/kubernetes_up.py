"""How long a local cluster under Kubernetes takes: from nothing to a passed AllReduce, and again.

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
from .local_up import measure

NODES = 2
UP_SECONDS = 60.0
AGAIN_SECONDS = 3.0
BUNDLE_SECONDS = 720.0
_BUILD = Path(__file__).parents[2] / ".ci" / "bundle_kubernetes.py"


def spec_text(name: str) -> str:
    """Return a local cluster: one control plane, and nodes with eight simulated GPUs each."""
    return f"""apiVersion: gcluster/v1
name: {name}
sites: {{here: {{provider: local}}}}
pools:
  head: {{site: here, role: controller}}
  gpu: {{site: here, machine: sim.h100x8, count: {NODES}}}
scheduler: {{type: kubernetes, kueue: false}}
"""


def build(folder: Path) -> float:
    """Build the bundle with nothing cached, not even Go modules; return the seconds."""
    folder.mkdir()
    places = {"XDG_CACHE_HOME": f"{folder}/cache", "GOPATH": f"{folder}/go"}
    environment = {**os.environ, **places, "GOFLAGS": "-modcacherw"}
    began = time.perf_counter()
    subprocess.run([sys.executable, _BUILD], check=True, env=environment, stdout=sys.stderr)
    return time.perf_counter() - began


def main() -> int:
    """Measure, and report against the limits."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--bundle", action="store_true", help="also build the bundle, from nothing")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gcluster-bench-") as name:
        folder = Path(name)
        built = build(folder / "bundle") if options.bundle else None
        _, up, again = measure(folder, with_bytecode(), spec_text(f"bench-{os.getpid()}"))
    cold = [] if built is None else [
        Result(name="bundle, nothing cached", value=built, unit="s", limit=BUNDLE_SECONDS)
    ]  # fmt: skip
    results = [
        *cold,
        Result(name=f"up, 1+{NODES} nodes, AllReduce passed", value=up, unit="s", limit=UP_SECONDS),
        Result(name="up again, nothing to do", value=again, unit="s", limit=AGAIN_SECONDS),
    ]
    return report(
        "local Kubernetes, image and bundle cached",
        results,
        as_json=options.json,
        ratios=options.ratios,
    )


if __name__ == "__main__":
    sys.exit(main())
