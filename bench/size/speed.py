"""How long `gcluster size` takes: Llama 3 405B, 16,384 GPUs, all layouts of five machine types."""

from __future__ import annotations

import statistics
import time

from gcluster.inventory.size.constants import constants
from gcluster.inventory.size.model import presets
from gcluster.inventory.size.training import Workload, plan
from gcluster.schemas.catalog import load_catalog

from ..timing import Result, arguments, fitted_exponent, report

MACHINES = (
    "p5.48xlarge",
    "a3-megagpu-8g",
    "dgx-h100",
    "Standard_ND96isr_H100_v5",
    "BM.GPU.B200.8",
)
GPUS = 16_384
SIZES = (1_024, 2_048, 4_096, 8_192, GPUS)
BATCH = 16 * 2**20
"""Tokens of a step on most of those GPUs (arXiv 2407.21783, table 4)."""
SECONDS = 1.0
EXPONENT = 1.0
"""More GPUs are more ways to split, but not in proportion."""
_ROUNDS = 3


def seconds(gpus: int) -> float:
    """Return the median of the seconds on a core that all machines take."""
    catalog, fitted = load_catalog(), constants()
    work = Workload(
        model=presets()["llama-3-405b"], sequence=8192, tokens=15.6e12, batch_tokens=BATCH
    )
    found = []
    for _ in range(_ROUNDS):
        begin = time.process_time()
        for name in MACHINES:
            machine = catalog.machines[name]
            per_node = machine.gpu.count if machine.gpu else 1
            plan(work, machine, fitted, nodes=gpus // per_node)
        found.append(time.process_time() - begin)
    return statistics.median(found)


def main() -> int:
    """Measure and report."""
    requested = arguments(__doc__ or "").parse_args()
    seconds(SIZES[0])  # reads the catalog
    points = {gpus: seconds(gpus) for gpus in SIZES}
    results = [
        Result(
            name=f"5 machines, {GPUS:,} GPUs, all layouts of 405B",
            value=points[GPUS],
            unit="s",
            limit=SECONDS,
        ),
        Result(name="exponent over GPUs", value=fitted_exponent(points), unit="", limit=EXPONENT),
    ]
    return report("sizing a training run", results, as_json=requested.json, ratios=requested.ratios)


if __name__ == "__main__":
    raise SystemExit(main())
