"""Splits the output of one job by node and by run of a soak, and finds how it ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import msgspec

from ....smoke.judging.verdict import Expectation
from ..jobs import AGAIN, Output, by_node
from ..table import AcceptanceTest, ReaderName
from .collective import read_collective
from .fabric import read_ibdiagnet
from .files import read_elbencho, read_fio, read_ior, read_mdtest
from .gpus import read_dcgm, read_gpu_burn, read_nvbandwidth, read_rvs
from .hpl import read_hpl
from .measure import read_measure
from .result import MOST, Figure, Reading
from .wiring import Cable, read_wiring

EMPTY: Mapping[str, Mapping[str, Cable]] = {}
READERS: Mapping[ReaderName, Callable[[str], Reading]] = {
    "measure": read_measure,
    "dcgm": read_dcgm,
    "rvs": read_rvs,
    "nvbandwidth": read_nvbandwidth,
    "gpu-burn": read_gpu_burn,
    "ibdiagnet": read_ibdiagnet,
    "ior": read_ior,
    "mdtest": read_mdtest,
    "fio": read_fio,
    "hpl": read_hpl,
    "elbencho": read_elbencho,
    "wiring": partial(read_wiring, planned={}),
}
"""Parsers that take the text alone; collectives also need the expected data, cables the plan."""


def read_output(  # noqa: PLR0917  # all that readers go by
    test: AcceptanceTest,
    reader: ReaderName,
    targets: Sequence[str],
    output: Output,
    expected: Expectation,
    wiring: Mapping[str, Mapping[str, Cable]] = EMPTY,
) -> list[Reading]:
    """Return a job's result for each of its targets.

    Args:
        test: what was run.
        reader: of the variant that was run.
        targets: nodes, where each worked by itself; else one.
        output: of the job.
        expected: what a collective must prove.
        wiring: node -> device -> its cable's far end in the plan.
    """
    if test.scope == "node":
        answer = by_node(output.text, targets)
        readers = {
            target: partial(read_wiring, planned=wiring.get(target, {}))
            if reader == "wiring"
            else READERS[reader]
            for target in targets
        }
        return [_of_node(readers[target], *answer[target], output) for target in targets]
    if reader != "collective":
        return [_ended(READERS[reader](output.text), output)]
    if not test.soak:
        return [_ended(read_collective(output.text, expected), output)]
    runs = [part for part in output.text.split(f"{AGAIN}\n") if part.strip()]
    return [_soaked([read_collective(run, expected) for run in runs], output)]


def _of_node(
    reader: Callable[[str], Reading], text: str, status: int | None, output: Output
) -> Reading:
    """Return the result of one node of many; one without an end mark has failed."""
    read = reader(text)
    if status is None:
        why = output.problem or "it did not come to its end"
        return msgspec.structs.replace(read, failures=(*read.failures, why))
    if status and not read.failures:
        return msgspec.structs.replace(read, failures=(f"it ended with status {status}",))
    return read


def _ended(read: Reading, output: Output) -> Reading:
    why = output.problem or (f"it ended with status {output.status}" if output.status else "")
    if why and (output.problem or not read.failures):
        lines = [line for line in output.text.strip().splitlines()[-3:] if line]
        return msgspec.structs.replace(read, failures=(why, *read.failures, *lines))
    return read


def _soaked(runs: Sequence[Reading], output: Output) -> Reading:
    """Return the lowest bandwidth of all runs, how many there were, and every failure."""
    speeds = [figure.value for run in runs for figure in run.figures]
    figures = (
        (
            Figure(metric="busbw", value=min(speeds)),
            Figure(metric="runs", value=float(len(speeds))),
            Figure(metric="drop", value=100 * (1 - min(speeds) / max(speeds))),
        )
        if any(speeds)
        else ()
    )
    failures = tuple(
        f"run {number}: {failed}" for number, run in enumerate(runs, 1) for failed in run.failures
    )
    read = Reading(figures=figures, failures=failures[:MOST] or (() if figures else ("no run",)))
    return _ended(read, output)
