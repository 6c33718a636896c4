"""Which layouts of a model fit on machines, how fast each is, and how many machines a run takes."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from typing import Literal, TypeAlias

import msgspec

from ...schemas.catalog import Machine, Price
from .accelerator import Accelerator, Precision, accelerator
from .constants import Accuracy, Constants
from .layout import Layout, layouts
from .memory import Memory, memory
from .model import Model
from .reliability import Reliability, reliability
from .step_time import StepTime, step_time

Method: TypeAlias = Literal["full", "lora"]
"""full: all weights are trained. lora: adapters next to them are, the weights are frozen."""
MARGIN = 0.05
"""Part of a GPU's memory that is left: CUDA's context, NCCL's buffers, fragmentation. An
assumption; with it nine of ten published runs (bench/size) fit that did run."""
BATCH_TOKENS = 4 * 2**20
"""Tokens of a step by default: what Llama 3 begins with (arXiv 2407.21783, section 3.4.1)."""
MOST_GPUS = 131_072
"""Largest number tried: no published run shows how a larger job scales."""
_MOST_SHOWN = 5
_PER_DOUBLING = 8
"""Numbers of machines that are tried between one and its double."""
_DAY = 86_400.0


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """Bus bandwidths of AllReduce that a cluster's gate measured, bytes/s."""

    cluster: str
    time: str
    machine: str
    """Type of the nodes; other types keep the catalog's figures."""
    between: float | None
    """Between nodes, for all GPUs of a node together; None: not measured."""
    inside: float | None
    """Inside a node, for each GPU; None: not measured."""


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """What is trained, and how."""

    model: Model
    sequence: int
    """Tokens of a sequence."""
    batch_tokens: int = BATCH_TOKENS
    """Tokens of a step, about: as a whole number of sequences for each member of DP."""
    tokens: float | None = None
    """Tokens of the run; None: time and cost of a run aren't computed."""
    deadline_s: float | None = None
    """How long it may take."""
    precision: Precision = "bf16"
    method: Method = "full"
    lora_rank: int = 16
    margin: float = MARGIN
    """Part of the memory that stays free."""
    token_bytes: float = 4.0
    """What is read for a token: 4 of text, kilobytes of images or video."""
    read: float | None = None
    """Bytes/s that storage delivers; None: enough."""
    write: float | None = None
    """Bytes/s that storage takes; None: enough to write a checkpoint in a minute."""
    oversubscription: float = 1.0
    """Of a leaf's links to the spine."""
    leaf_nodes: int | None = None
    """Nodes below a leaf; None: as if all were."""
    measured: Measured | None = None
    """Bandwidths of a cluster's certificate, which count instead of the catalog's."""


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A layout that fits."""

    layout: Layout
    memory: Memory
    time: StepTime
    tokens_per_s: float
    """Of all GPUs."""
    mfu: float
    """Model FLOP (causal attention, no recomputation) against the GPUs' peak in the precision."""


class Misfit(msgspec.Struct, frozen=True, kw_only=True):
    """The layout that lacks least memory."""

    layout: Layout
    memory: Memory
    lacks: float
    """Bytes on each GPU."""


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """The whole run, failures included.

    The range of days holds for eight of ten runs that no number was fitted on, widened to what is
    predicted where those all took longer.
    """

    days: float
    days_at_most: float
    days_at_least: float
    usd: float | None
    """None: the catalog has no price of the machine."""
    meets_deadline: bool | None
    """None: there is none. By the expected days, not by the range."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """One machine type and a number of them."""

    machine: str
    nodes: int
    gpus: int
    tried: int
    """Layouts."""
    fitting: tuple[Candidate, ...] = ()
    """The fastest that fit, the fastest first."""
    fits: int = 0
    """Layouts that fit."""
    closest: Misfit | None = None
    """Where none fits."""
    why_not: str = ""
    """Where the machine can't be judged."""
    run: Run | None = None
    reliability: Reliability | None = None
    price: Price | None = None
    """On demand, of a node."""
    usd_per_hour: float | None = None

    @property
    def best(self) -> Candidate | None:
        """The fastest layout."""
        return self.fitting[0] if self.fitting else None


def plan(
    work: Workload,
    machine: Machine,
    constants: Constants,
    *,
    nodes: int | None = None,
    region: str | None = None,
) -> Plan:
    """Return the layouts on a number of machines.

    Args:
        work: what is trained.
        machine: a machine type of the catalog.
        constants: of the step-time model.
        nodes: how many; None: as few as fit, and as meet the deadline where there is one.
        region: whose price counts; None: the first that the catalog has.
    """
    gpu = joined(work, machine)
    if isinstance(gpu, str):
        return Plan(machine=machine.name, nodes=0, gpus=0, tried=0, why_not=gpu)
    price = price_of(machine, region)
    if nodes is not None:
        return _planned(work, machine, gpu, constants, nodes=nodes, price=price)
    counts = [*_counts(gpu)]
    enough = 0  # in doublings first, then what lies between the last two
    before: Plan | None = None
    while True:
        found = _planned(work, machine, gpu, constants, nodes=counts[enough], price=price)
        if _is_answer(found) or enough == len(counts) - 1:
            break
        before = found
        enough = min(enough + _PER_DOUBLING, len(counts) - 1)
    if found.why_not:  # of so many; what fewer do, though late, is more informative
        return found if before is None or before.best is None else before
    for count in counts[max(0, enough - _PER_DOUBLING + 1) : enough]:
        fewer = _planned(work, machine, gpu, constants, nodes=count, price=price)
        if _is_answer(fewer):
            return fewer
    return found


def joined(work: Workload, machine: Machine) -> Accelerator | str:
    """Return a machine's GPU with the fabric of the workload, or why it isn't known."""
    gpu = accelerator(machine)
    if isinstance(gpu, str):
        return gpu
    leaf = None if work.leaf_nodes is None else work.leaf_nodes * gpu.per_node
    if leaf is None and work.oversubscription > 1:
        leaf = gpu.per_node
    gpu = msgspec.structs.replace(gpu, leaf=leaf, oversubscription=work.oversubscription)
    seen = work.measured
    if seen is None or seen.machine != machine.name:
        return gpu
    nic = gpu.nic if seen.between is None else seen.between / gpu.per_node
    nvlink = gpu.nvlink if seen.inside is None else seen.inside
    return msgspec.structs.replace(gpu, nic=nic, nvlink=nvlink)


def room(work: Workload, machine: Machine) -> float:
    """Return the bytes of a GPU's memory that a layout may take; 0: not known."""
    gpu = machine.gpu
    return gpu.memory_gib * 2.0**30 * (1 - work.margin) if gpu else 0.0


def _is_answer(found: Plan) -> bool:
    """Return whether more machines need not be tried: it fits in time, or can't be judged."""
    late = found.run is not None and found.run.meets_deadline is False
    return bool(found.why_not) or (found.best is not None and not late)


def price_of(machine: Machine, region: str | None) -> Price | None:
    """Return the price of a node on demand, in a region or in the first that has one."""
    if region is not None:
        return machine.price(region=region)
    return next((price for price in machine.prices if price.market == "on-demand"), None)


def accuracy(model: Model, constants: Constants) -> Accuracy:
    """Return how far step times of such a model are off."""
    return constants.experts if model.experts else constants.dense


def _counts(gpu: Accelerator) -> Iterator[int]:
    """Yield numbers of machines: all up to 16, then eight in each doubling."""
    count = 1
    while count * gpu.per_node <= MOST_GPUS:
        yield count
        count += max(1, 2 ** (count.bit_length() - 4))


def _planned(
    work: Workload,
    machine: Machine,
    gpu: Accelerator,
    constants: Constants,
    *,
    nodes: int,
    price: Price | None,
) -> Plan:
    gpus = nodes * gpu.per_node
    usd = None if price is None else price.usd_per_hour * nodes
    none = Plan(
        machine=machine.name, nodes=nodes, gpus=gpus, tried=0, price=price, usd_per_hour=usd
    )
    peak = gpu.peak(work.precision)
    if peak is None:
        return msgspec.structs.replace(
            none, why_not=f"a {gpu.gpu} has no units for {work.precision}"
        )
    if nodes > 1 and gpu.nic is None and gpus > gpu.domain:
        why = f"the speed of the NICs of {machine.name} is not known: only one node can be sized"
        return msgspec.structs.replace(none, why_not=why)
    room = gpu.memory * (1 - work.margin)
    rank = work.lora_rank if work.method == "lora" else 0
    tried, closest = 0, None
    fitting: list[Candidate] = []
    for layout in layouts(
        work.model,
        gpus=gpus,
        domain=gpu.domain,
        sequence=work.sequence,
        sequences=max(1, round(work.batch_tokens / work.sequence)),
    ):
        tried += 1
        needed = memory(work.model, layout, work.sequence, lora_rank=rank)
        lacks = needed.total - room
        if lacks > 0:
            if closest is None or lacks < closest.lacks:
                closest = Misfit(layout=layout, memory=needed, lacks=lacks)
            continue
        found = _candidate(work, layout, needed, gpu, constants, peak=peak)
        if isinstance(found, str):
            return msgspec.structs.replace(none, why_not=found)
        fitting.append(found)
    best = _ranked(fitting, work.model.layers, constants.dense.median)
    risk = run = None
    if best:
        saved = work.model.lora_parameters(rank) if rank else work.model.parameters
        risk = reliability(saved, gpus, gpu.per_node, work.write)
        run = _run(work, best[0], risk, constants, usd)
    return msgspec.structs.replace(
        none,
        tried=tried,
        fits=len(fitting),
        fitting=tuple(best),
        closest=None if fitting else closest,
        run=run,
        reliability=risk,
    )


def _ranked(fitting: list[Candidate], layers: int, alike: float) -> list[Candidate]:
    """Return the layouts to show, the one to take first.

    Those that are slower than the fastest by less than the model is off count as equal to it; of
    them the one with the least CP x PP is first, as people who train split: TP inside a node, then
    stages of as many layers each, CP for what is still too long.

    Args:
        fitting: all that fit.
        layers: of the model.
        alike: share of the fastest's tokens a second: the model's median error.
    """
    if not fitting:
        return []
    least = (1 - alike) * max(each.tokens_per_s for each in fitting)
    equal = sorted(
        (each for each in fitting if each.tokens_per_s >= least),
        key=lambda each: (
            layers % each.layout.pp != 0,
            each.layout.cp * each.layout.pp,
            each.layout.cp,
            [-part for part in _speed(each)],
        ),
    )[:_MOST_SHOWN]
    slower = [each for each in fitting if each.tokens_per_s < least]
    return equal + heapq.nlargest(_MOST_SHOWN - len(equal), slower, key=_speed)


def _speed(each: Candidate) -> tuple[float, float]:
    """Return what ranks layouts: tokens a second; where storage makes them equal, the rest."""
    return float(f"{each.tokens_per_s:.9g}"), each.time.input


def _candidate(
    work: Workload,
    layout: Layout,
    needed: Memory,
    gpu: Accelerator,
    constants: Constants,
    *,
    peak: float,
) -> Candidate | str:
    trained = work.method == "full"
    time = step_time(
        work.model,
        layout,
        gpu,
        constants.fitted,
        sequence=work.sequence,
        precision=work.precision,
        trained=trained,
    )
    if isinstance(time, str):
        return time
    if work.read is not None:  # the next step's tokens are read while this one computes
        tokens = layout.sequences * work.sequence
        waited = max(0.0, tokens * work.token_bytes / work.read - time.total)
        time = msgspec.structs.replace(time, input=waited)
    tokens_per_s = layout.sequences * work.sequence / time.total
    flops = work.model.flops_per_token(work.sequence, trained=trained)
    return Candidate(
        layout=layout,
        memory=needed,
        time=time,
        tokens_per_s=tokens_per_s,
        mfu=tokens_per_s * flops / (layout.gpus * peak),
    )


def _run(
    work: Workload,
    best: Candidate,
    risk: Reliability,
    constants: Constants,
    usd_per_hour: float | None,
) -> Run | None:
    if work.tokens is None:
        return None
    seconds = work.tokens / best.tokens_per_s / risk.goodput
    off = accuracy(work.model, constants)
    deadline = work.deadline_s
    return Run(
        days=seconds / _DAY,
        days_at_least=seconds / max(1.0, off.fast) / _DAY,
        days_at_most=seconds / min(1.0, off.slow) / _DAY,
        usd=None if usd_per_hour is None else usd_per_hour * seconds / 3600,
        meets_deadline=None if deadline is None else seconds <= deadline,
    )


def steps(work: Workload, best: Candidate) -> int | None:
    """Return the steps of the run; None: its tokens aren't given."""
    if work.tokens is None:
        return None
    return math.ceil(work.tokens / (best.layout.sequences * work.sequence))


class Lever(msgspec.Struct, frozen=True, kw_only=True):
    """How a step's time changes with half and with double of something, as a share of it."""

    name: str
    half: float
    double: float


def levers(work: Workload, machine: Machine, best: Candidate, constants: Constants) -> list[Lever]:
    """Return what moves a step of a layout, the strongest first; what doesn't is left out."""
    gpu = joined(work, machine)
    peak = None if isinstance(gpu, str) else gpu.peak(work.precision)
    if isinstance(gpu, str) or peak is None:
        return []

    def change(factor: float, *names: str) -> float:
        by = {name: getattr(gpu, name) for name in names}
        scaled = {name: value and value * factor for name, value in by.items()}
        other = msgspec.structs.replace(gpu, **scaled)
        found = _candidate(work, best.layout, best.memory, other, constants, peak=peak)
        return 0.0 if isinstance(found, str) else found.time.total / best.time.total - 1

    def read(factor: float) -> float:
        if work.read is None:
            return 0.0
        slow = msgspec.structs.replace(work, read=work.read * factor)
        found = _candidate(slow, best.layout, best.memory, gpu, constants, peak=peak)
        return 0.0 if isinstance(found, str) else found.time.total / best.time.total - 1

    found = [
        Lever(name=name, half=change(0.5, *fields), double=change(2.0, *fields))
        for name, fields in _LEVERS.items()
    ]
    found.append(Lever(name="storage, reading", half=read(0.5), double=read(2.0)))
    moving = [each for each in found if max(abs(each.half), abs(each.double)) >= _LEAST_CHANGE]
    return sorted(moving, key=lambda each: -abs(each.half))


_LEVERS = {
    "arithmetic of a GPU": ("bf16", "fp8"),
    "its memory's bandwidth": ("hbm",),
    "NVLink": ("nvlink",),
    "network": ("nic",),
}
_LEAST_CHANGE = 0.0005


def scaling(
    work: Workload, machine: Machine, constants: Constants, nodes: int
) -> list[tuple[int, float]]:
    """Return GPUs and tokens a second of the best layouts on a quarter to four times as many."""
    found = []
    for count in sorted({max(1, nodes // 4), max(1, nodes // 2), nodes, 2 * nodes, 4 * nodes}):
        tried = plan(work, machine, constants, nodes=count)
        if tried.best is not None and tried.gpus <= MOST_GPUS:
            found.append((tried.gpus, tried.best.tokens_per_s))
    return found
