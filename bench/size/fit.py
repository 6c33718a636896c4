"""Fit the step-time model on half of the published runs, and judge it on the other half.

`python -m bench.size.fit` shows it, `--write` also writes inventory/size/data/constants.yaml. The
fit takes the mean of log(predicted / published) squared, each group of a source, a GPU and a model
with the same weight, so that a table of two hundred rows outweighs no table of ten; coordinates are
moved one after the other by steps that halve. The other half is not used while it runs.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

import msgspec
import yaml

from gcluster.inventory.size import constants as module
from gcluster.inventory.size.constants import Accuracy, Constants, Efficiency, Fitted

from .runs import Run, errors, runs

FILE = Path(module.__file__).parent / "data" / "constants.yaml"
_START = Fitted(
    efficiencies=[],
    attention={},
    traffic=4.0,
    unfused_traffic=1.2,
    unfused_attention=0.8,
    scores=4.0,
    logits=2.0,
    exposed_nvlink=0.5,
    exposed_network=0.2,
    exposed_data=0.2,
    exposed_sharded=0.2,
    exposed_sharded_nvlink=0.2,
    jitter=0.002,
    experts=0.5,
    expert_s=1e-3,
)
_BOUNDS = {
    "traffic": (0.0, 20.0),
    "unfused_traffic": (1.0, 4.0),
    "unfused_attention": (0.1, 1.0),
    "scores": (0.0, 20.0),
    "logits": (0.0, 10.0),
    "exposed_nvlink": (0.0, 1.0),
    "exposed_network": (0.0, 1.0),
    "exposed_data": (0.0, 1.0),
    "exposed_sharded": (0.0, 1.0),
    "exposed_sharded_nvlink": (0.0, 1.0),
    "jitter": (0.0, 0.03),
    "experts": (0.1, 1.0),
    "expert_s": (1e-5, 0.1),
}
_EXPERTS = {"experts", "expert_s"}
"""Parameters that only runs of mixtures of experts determine."""
_LEAST_STEP = 0.002
_MOST_HALF_WIDTH = 4000.0
Change: TypeAlias = Callable[[Fitted], Fitted]


def fit(found: Sequence[Run], *, least_step: float = _LEAST_STEP) -> Fitted:
    """Return the numbers that predict these runs best: of dense models, then that of experts.

    Args:
        found: the runs.
        least_step: relative step at which it ends.
    """
    dense = [run for run in found if run.is_dense]
    counts = Counter((run.gpu.generation, run.precision) for run in dense)
    start = msgspec.structs.replace(
        _START,
        efficiencies=[
            Efficiency(
                generation=generation,
                precision=precision,  # type: ignore[arg-type]  # a key of the file
                share=0.75,
                half_width=500.0,
                runs=runs,
            )
            for (generation, precision), runs in sorted(counts.items())
        ],
        attention={generation: 0.4 for generation, _ in sorted(counts)},
    )
    best = _improved(start, dense, _of_dense, least_step)
    best = _with_other_precision(best, counts)
    experts = [run for run in found if not run.is_dense]
    return _rounded(_improved(best, experts, _of_experts, least_step))


def _improved(
    best: Fitted,
    found: Sequence[Run],
    trials: Callable[[Fitted, float], Iterator[Change]],
    least_step: float,
) -> Fitted:
    """Return numbers that no step of a trial makes better for these runs."""
    weights = Counter(map(_group, found))

    def loss(fitted: Fitted) -> float:
        return sum(
            math.log1p(error) ** 2 / weights[_group(run)] for error, run in errors(found, fitted)
        )

    least, step = loss(best), 0.25
    while step > least_step:
        moved = False
        for change in trials(best, step):
            trial = change(best)
            if (now := loss(trial)) < least - 1e-6:
                best, least, moved = trial, now, True
        step = step if moved else step / 2
    return best


def _group(run: Run) -> tuple[str, str, str]:
    return run.source, run.gpu.gpu, run.model.name


def _of_dense(fitted: Fitted, step: float) -> Iterator[Change]:
    """Yield changes of each number but that of experts."""
    for factor in (1 + step, 1 / (1 + step)):
        for number in range(len(fitted.efficiencies)):
            yield partial(_with_share, number=number, factor=factor)
            yield partial(_with_half_width, number=number, factor=factor)
        for generation in fitted.attention:
            yield partial(_with_attention, generation=generation, factor=factor)
        for name in sorted(_BOUNDS.keys() - _EXPERTS):
            yield partial(_with_number, name=name, factor=factor)


def _of_experts(_: Fitted, step: float) -> Iterator[Change]:
    for factor in (1 + step, 1 / (1 + step)):
        for name in sorted(_EXPERTS):
            yield partial(_with_number, name=name, factor=factor)


def _with_number(fitted: Fitted, *, name: str, factor: float) -> Fitted:
    low, high = _BOUNDS[name]
    value = min(high, max(low, getattr(fitted, name) * factor))
    return msgspec.structs.replace(fitted, **{name: value})


def _with_attention(fitted: Fitted, *, generation: str, factor: float) -> Fitted:
    share = min(1.0, fitted.attention[generation] * factor)
    return msgspec.structs.replace(fitted, attention={**fitted.attention, generation: share})


def _with_share(fitted: Fitted, *, number: int, factor: float) -> Fitted:
    changed = list(fitted.efficiencies)
    share = min(1.0, changed[number].share * factor)
    changed[number] = msgspec.structs.replace(changed[number], share=share)
    return msgspec.structs.replace(fitted, efficiencies=changed)


def _with_half_width(fitted: Fitted, *, number: int, factor: float) -> Fitted:
    changed = list(fitted.efficiencies)
    width = min(_MOST_HALF_WIDTH, changed[number].half_width * factor)
    changed[number] = msgspec.structs.replace(changed[number], half_width=width)
    return msgspec.structs.replace(fitted, efficiencies=changed)


def _with_other_precision(fitted: Fitted, counts: Counter[tuple[str, str]]) -> Fitted:
    """Return the parameters with bf16's share set to fp8's where no run in bf16 gives another."""
    more = [
        msgspec.structs.replace(each, precision="bf16", runs=0)
        for each in fitted.efficiencies
        if (each.generation, "bf16") not in counts
    ]
    return msgspec.structs.replace(fitted, efficiencies=[*fitted.efficiencies, *more])


def _rounded(fitted: Fitted) -> Fitted:
    return Fitted(
        efficiencies=[
            msgspec.structs.replace(
                each, share=round(each.share, 3), half_width=float(f"{each.half_width:.3g}")
            )
            for each in fitted.efficiencies
        ],
        attention={name: round(share, 3) for name, share in fitted.attention.items()},
        **{name: float(f"{getattr(fitted, name):.3g}") for name in _BOUNDS},
    )


def accuracy(found: Sequence[Run], fitted: Fitted) -> Accuracy:
    """Return how far predictions of these runs are off."""
    all_of = [error for error, _ in errors(found, fitted)]
    sizes = [abs(error) for error in all_of]
    ratios = sorted(1 + error for error in all_of)
    tenth = (
        statistics.quantiles(ratios, n=10, method="inclusive") if len(ratios) > 1 else ratios * 9
    )
    return Accuracy(
        runs=len(all_of),
        median=round(statistics.median(sizes), 3),
        worst=round(max(sizes), 3),
        slow=round(tenth[0], 3),
        fast=round(tenth[8], 3),
    )


def found_constants(date: str) -> Constants:
    """Fit, and judge on what was set apart."""
    every = runs()
    fitted = fit([run for run in every if not run.is_apart])
    apart = [run for run in every if run.is_apart]
    return Constants(
        date=date,
        source=f"python -m bench.size.fit on {len(every)} published runs (bench/size)",
        fitted=fitted,
        dense=accuracy([run for run in apart if run.is_dense], fitted),
        experts=accuracy([run for run in apart if not run.is_dense], fitted),
    )


class _Indented(yaml.SafeDumper):
    """Writes elements of lists below their key, indented, as the project's YAML has them."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002  # the signature is PyYAML's
        super().increase_indent(flow, indentless=False)


def as_yaml(value: msgspec.Struct) -> str:
    """Return constants as YAML, in the order of their fields."""
    plain = msgspec.to_builtins(value)
    return str(yaml.dump(plain, Dumper=_Indented, sort_keys=False, allow_unicode=True))


def main() -> int:
    """Show the fit; with --write keep it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", metavar="DATE", help="write the constants, of this date")
    requested = parser.parse_args()
    found = found_constants(requested.write or "2026-11")
    text = as_yaml(found)
    print(text)
    if requested.write:
        FILE.write_text(f"# {HEAD}\n{text}", encoding="utf-8")
    return 0


HEAD = "Written by `python -m bench.size.fit --write DATE`: what the step-time model was fitted to."

if __name__ == "__main__":
    raise SystemExit(main())
