"""How far the step-time model is from published runs, by source: `make size-accuracy`."""

from __future__ import annotations

import argparse
import json
import statistics
from collections import defaultdict
from collections.abc import Sequence

from gcluster.inventory.size.constants import constants
from gcluster.inventory.size.training import MARGIN

from .runs import Run, errors, runs

TARGET_MEDIAN, TARGET_WORST = 0.15, 0.30
"""What is aimed at for dense models on A100 and H100."""
_STATED = ("Narayanan", "mosaicml")
"""Sources that state what is recomputed: only their memory figures are known to match."""


def table(found: Sequence[Run]) -> list[dict[str, object]]:
    """Return a row for each source, GPU, precision and kind of model."""
    by: dict[tuple[str, str, str, str], list[tuple[float, Run]]] = defaultdict(list)
    for error, run in errors(found, constants().fitted):
        kind = "dense" if run.is_dense else "experts"
        by[_short(run.source), run.gpu.gpu, run.precision, kind].append((error, run))
    return [
        {
            "source": source,
            "gpu": gpu,
            "precision": precision,
            "kind": kind,
            "runs": len(each),
            "median": round(statistics.median(abs(error) for error, _ in each), 3),
            "worst": round(max(abs(error) for error, _ in each), 3),
            "bias": round(statistics.mean(error for error, _ in each), 3),
        }
        for (source, gpu, precision, kind), each in by.items()
    ]


def fitting(found: Sequence[Run], *, margin: float = MARGIN) -> float:
    """Return the share of runs whose layout fits by the model; all of them did run."""
    fits = [run.memory().total <= run.gpu.memory * (1 - margin) for run in found]
    return sum(fits) / len(fits)


def summary(found: Sequence[Run]) -> dict[str, object]:
    """Return the figures that the targets are about."""
    aimed = [run for run in found if run.is_dense and run.gpu.gpu in {"A100", "H100"}]
    sizes = [abs(error) for error, _ in errors(aimed, constants().fitted)]
    stated = [run for run in found if run.source.startswith(_STATED)]
    return {
        "runs": len(aimed),
        "median": round(statistics.median(sizes), 3),
        "worst": round(max(sizes), 3),
        "within_30_percent": round(sum(size <= TARGET_WORST for size in sizes) / len(sizes), 3),
        "memory_fits": round(fitting(found), 3),
        "memory_fits_where_recomputation_is_stated": round(fitting(stated), 3),
    }


def _short(source: str) -> str:
    first = source.split(" ", maxsplit=1)[0]
    return first if "/" in first else source.split(" (", maxsplit=1)[0]


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    requested = parser.parse_args()
    halves = {
        "set apart": [run for run in runs() if run.is_apart],
        "fitted on": [run for run in runs() if not run.is_apart],
    }
    if requested.json:
        found = {name: {**summary(each), "by": table(each)} for name, each in halves.items()}
        print(json.dumps(found, indent=2))
        return 0
    for name, each in halves.items():
        print(f"{name}: {len(each)} runs")
        for row in table(each):
            print(
                f"  {row['source']:<36} {row['gpu']:<6} {row['precision']:<5} {row['kind']:<8}"
                f"{row['runs']:>4}  median {row['median']:>6.1%}  worst {row['worst']:>6.1%}"
                f"  mean {row['bias']:>+7.1%}"
            )
        total = summary(each)
        print(
            f"  dense on A100 and H100: {total['runs']} runs, median {total['median']:.1%} "
            f"(aimed at {TARGET_MEDIAN:.0%}), worst {total['worst']:.1%} (aimed at "
            f"{TARGET_WORST:.0%}), {total['within_30_percent']:.1%} of them within 30%"
        )
        print(
            f"  layouts that fit by the model: {total['memory_fits']:.1%}; where the source says "
            f"what is recomputed {total['memory_fits_where_recomputation_is_stated']:.1%}\n"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
