"""Fit the roofline of inference on half of some runs of TensorRT-LLM, and judge it on the rest.

`python -m bench.size.serving_fit` shows it, `--write DATE` writes inventory/size/data/serving.yaml.
The runs are those of NVIDIA/TensorRT-LLM docs/source/performance.md (v0.6.1) and
docs/source/blogs/H200launch.md: Llama 2 on A100, H100 and H200, static batches; of rows whose unit
or split is in doubt (A100 with TP, per GPU or not) only the latencies. 70B is set apart.
"""

from __future__ import annotations

import argparse
import csv
import math
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from gcluster.inventory.size import serving as module
from gcluster.inventory.size.accelerator import Accelerator, Precision
from gcluster.inventory.size.model import presets
from gcluster.inventory.size.serving import ServingConstants, decode_s, prefill_s

from .fit import as_yaml
from .runs import gpu

RUNS = Path(__file__).with_name("serving_runs.csv")
FILE = Path(module.__file__).parent / "data" / "serving.yaml"
_MEMORY_GIB = {"A100": 80, "H100": 80, "H200": 141}
_NAMES = ("bf16", "fp8", "bandwidth", "layer_s")
_MOST_BANDWIDTH = 0.9
"""No copy reads more of an HBM's data sheet than about this."""
_STEPS = 8
"""Decode steps of a run that are computed; the others lie between."""


class ServingRun(NamedTuple):
    """One row."""

    model: str
    accelerator: Accelerator
    precision: Precision
    tp: int
    batch: int
    input: int
    output: int
    seconds: float
    """From the first token of the input to the last of the output, for the whole batch."""
    is_apart: bool

    def predicted_s(self, constants: ServingConstants) -> float:
        """Return the model's prediction."""
        shape, precision = presets()[self.model], self.precision
        begin = prefill_s(
            shape,
            self.accelerator,
            constants,
            tp=self.tp,
            tokens=self.input,
            batch=self.batch,
            precision=precision,
        )
        if self.output == 1:
            return begin
        steps = [
            decode_s(
                shape,
                self.accelerator,
                constants,
                tp=self.tp,
                context=self.input + self.output * (part + 0.5) / _STEPS,
                batch=self.batch,
                precision=precision,
            )
            for part in range(_STEPS)
        ]
        return begin + statistics.mean(steps) * (self.output - 1)


def serving_runs() -> list[ServingRun]:
    """Return all rows."""
    with RUNS.open(encoding="utf-8", newline="") as file:
        return [*_rows(csv.DictReader(file))]


def _rows(rows: csv.DictReader[str]) -> Iterator[ServingRun]:
    for row in rows:
        tp, batch, output = int(row["tp"]), int(row["batch"]), int(row["output"])
        value = float(row["value"])
        latency = row["measure"] == "first_token_ms"
        yield ServingRun(
            model=row["model"],
            accelerator=gpu(row["gpu"], _MEMORY_GIB[row["gpu"]], 50.0),
            precision=row["precision"],  # type: ignore[arg-type]  # a key of the file
            tp=tp,
            batch=batch,
            input=int(row["input"]),
            output=output,
            seconds=value / 1000 if latency else batch * output / (value * tp),
            is_apart=row["half"] == "apart",
        )


def errors(found: list[ServingRun], constants: ServingConstants) -> list[float]:
    """Return predicted / published - 1 of each run."""
    return [run.predicted_s(constants) / run.seconds - 1 for run in found]


def fit_serving(date: str) -> ServingConstants:
    """Return the numbers that predict the half for fitting best, and the error on the other."""
    every = serving_runs()
    own = [run for run in every if not run.is_apart]
    best = ServingConstants(
        date=date,
        source=f"python -m bench.size.serving_fit on {len(every)} published runs (bench/size)",
        compute={"bf16": 0.5, "fp8": 0.5},
        bandwidth=0.6,
        layer_s=2e-5,
        runs=0,
        median=0,
        worst=0,
    )

    def loss(constants: ServingConstants) -> float:
        return sum(abs(math.log1p(error)) for error in errors(own, constants))

    least, step = loss(best), 0.3
    while step > 0.002:  # noqa: PLR2004  # a fifth of a percent
        moved = False
        for name in _NAMES:
            for factor in (1 + step, 1 / (1 + step)):
                trial = _changed(best, name, factor)
                if (now := loss(trial)) < least - 1e-9:
                    best, least, moved = trial, now, True
        step = step if moved else step / 2
    best = msgspec.structs.replace(
        best,
        compute={name: round(share, 3) for name, share in best.compute.items()},
        bandwidth=round(best.bandwidth, 3),
        layer_s=float(f"{best.layer_s:.3g}"),
    )
    off = [abs(error) for error in errors([run for run in every if run.is_apart], best)]
    return msgspec.structs.replace(
        best, runs=len(off), median=round(statistics.median(off), 3), worst=round(max(off), 3)
    )


def _changed(constants: ServingConstants, name: str, factor: float) -> ServingConstants:
    """Return constants with one of them larger or smaller, within what is possible."""
    if name in constants.compute:
        share = min(1.0, constants.compute[name] * factor)
        return msgspec.structs.replace(constants, compute={**constants.compute, name: share})
    most = _MOST_BANDWIDTH if name == "bandwidth" else 1.0
    value = min(most, getattr(constants, name) * factor)
    return msgspec.structs.replace(constants, **{name: value})


def main() -> int:
    """Show the fit; with --write keep it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", metavar="DATE", help="write the constants, of this date")
    requested = parser.parse_args()
    found = fit_serving(requested.write or "2026-11")
    text = as_yaml(found)
    print(text)
    if requested.write:
        head = "Written by `python -m bench.size.serving_fit --write DATE`."
        FILE.write_text(f"# {head}\n{text}", encoding="utf-8")
    for run, error in zip(serving_runs(), errors(serving_runs(), found), strict=True):
        half = "apart" if run.is_apart else "fit"
        print(
            f"{half:<6}{run.model} {run.accelerator.gpu} TP{run.tp} batch {run.batch} "
            f"{run.input}+{run.output}: {error:+.0%}"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
