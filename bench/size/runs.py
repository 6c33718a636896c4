"""Published training runs: configuration and tokens a second, each row with its source.

A row belongs to one of two halves, fixed before anything was fitted: groups of a source, a GPU and
a model, in the order of the file, are for fitting and set apart in turn. What a source doesn't
state and had to be assumed is in `assumed`. Throughputs that sources print as FLOP/s were turned
back into tokens by the source's own formula: Narayanan et al. by their equation 3, which counts
full recomputation, Llama 3 by 6 N + 6 L h s.

Gradients of NVIDIA's runs are summed in bf16 (grad_sync_dtype: bf16 in llama3.1/*.yaml,
nemo_megatron/gpt3_175b_hydra.yaml and nemotron/*.yaml of dgxc-benchmarking at the rows' commit;
grad_reduce_in_fp32 = False in the performance scripts of NeMo 2 and Megatron-Bridge), and NeMo's
distributed_fused_adam keeps of the weights only the bits that bf16 lacks (store_param_remainders,
nemo/collections/nlp/models/language_modeling/megatron_base_model.py). Megatron-Bridge gathers
weights in FP8 (fp8_param_gather in src/megatron/bridge/training/mixed_precision.py). Sequence
parallelism is from 2022 (arXiv 2205.05198): runs of 2021 have none. MosaicML's runs have PyTorch's
norms, GELU and loss, and FlashAttention in Triton (attn_impl of
scripts/train/benchmarking/submit_benchmarks.py); NVIDIA's have Transformer Engine and cuDNN.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from gcluster.inventory.size.accelerator import Accelerator, peaks
from gcluster.inventory.size.constants import Fitted
from gcluster.inventory.size.layout import Layout
from gcluster.inventory.size.memory import Memory, memory
from gcluster.inventory.size.model import Model, presets
from gcluster.inventory.size.step_time import step_time

FILE = Path(__file__).with_name("published_runs.csv")
LORA_RANK = 16
"""The source doesn't state it; adapters are small at any."""
_GPTS = {
    "gpt-1.7b": (2304, 24, 24),
    "gpt-3.6b": (3072, 30, 32),
    "gpt-7.5b": (4096, 36, 32),
    "gpt-18.4b": (6144, 40, 48),
    "gpt-39.1b": (8192, 48, 64),
    "gpt-76.1b": (10240, 60, 80),
    "gpt-145.6b": (12288, 80, 96),
    "gpt-310.1b": (16384, 96, 128),
    "gpt-529.6b": (20480, 105, 128),
    "gpt-1008b": (25600, 128, 160),
}
"""Hidden size, layers and heads of the models of arXiv 2104.04473, table 1."""
_MEGATRONS = {
    "megatron-1.7b": (2048, 24, 16),
    "megatron-7.1b": (4096, 30, 32),
    "megatron-16b": (6144, 32, 48),
    "megatron-32b": (7168, 48, 56),
    "megatron-70b": (8192, 84, 64),
    "megatron-119b": (10240, 92, 80),
    "megatron-177b": (12288, 96, 96),
    "megatron-314b": (16384, 96, 128),
    "megatron-462b": (18432, 112, 144),
}
"""The same of Megatron-LM's README (images/model_table.png, Megatron-Core 0.8)."""
_NODES = {
    "A100": (8, 300e9),
    "H100": (8, 480e9),
    "H200": (8, 475e9),
    "B200": (8, 900e9),
    "GB200": (72, 900e9),
}
"""GPU -> GPUs of an NVLink domain, and its bus bandwidth as in the catalog."""
_PER_NODE = {"GB200": 4}


class Run(NamedTuple):
    """One row."""

    model: Model
    gpu: Accelerator
    layout: Layout
    precision: str
    method: str
    sequence: int
    batch: int
    step_s: float
    """Seconds of a step, as published."""
    is_apart: bool
    source: str
    assumed: str

    @property
    def is_dense(self) -> bool:
        """Whether the model has no experts."""
        return self.model.experts is None

    @property
    def name(self) -> str:
        """What it is called in tables."""
        machines = f"{self.layout.gpus}x{self.gpu.gpu}"
        return f"{self.model.name} {self.precision} s{self.sequence} {machines} {self.layout.text}"

    def predicted_s(self, fitted: Fitted) -> float:
        """Return the step time that the model predicts.

        Raises:
            ValueError: it predicts none.
        """
        found = step_time(
            self.model,
            self.layout,
            self.gpu,
            fitted,
            sequence=self.sequence,
            precision=self.precision,  # type: ignore[arg-type]  # a key of the file
            trained=self.method == "full",
        )
        if isinstance(found, str):
            raise ValueError(f"{self.name}: {found}")  # noqa: TRY004  # what is wrong is the row
        return found.total

    def memory(self) -> Memory:
        """Return what the layout needs."""
        rank = LORA_RANK if self.method == "lora" else 0
        return memory(self.model, self.layout, self.sequence, lora_rank=rank)


def models() -> dict[str, Model]:
    """Return the models of the runs: gcluster's own, and those of tables of GPT models."""
    gpts = _models(_GPTS, 51200, 2048, source="arXiv 2104.04473, table 1", date="2021-04")
    megatrons = _models(
        _MEGATRONS, 131072, 4096, source="Megatron-LM README", date="2024-07", tied=False
    )
    return {**presets(), **gpts, **megatrons}


def _models(
    shapes: Mapping[str, tuple[int, int, int]],
    vocab: int,
    sequence: int,
    *,
    source: str,
    date: str,
    tied: bool | None = None,
) -> dict[str, Model]:
    return {
        name: Model(
            name=name,
            hidden=hidden,
            layers=layers,
            heads=heads,
            ffn=4 * hidden,
            vocab=vocab,
            sequence=sequence,
            kind="gpt",
            tied=tied,
            source=source,
            date=date,
        )
        for name, (hidden, layers, heads) in shapes.items()
    }


def runs() -> list[Run]:
    """Return all rows."""
    known = models()
    with FILE.open(encoding="utf-8", newline="") as file:
        return [_run(row, known) for row in csv.DictReader(file)]


def _run(row: dict[str, str], known: dict[str, Model]) -> Run:
    numbers = {name: int(row[name]) for name in ("tp", "pp", "cp", "ep", "chunks", "micro_batch")}
    gpus, batch, sequence = int(row["gpus"]), int(row["batch"]), int(row["sequence"])
    dp = gpus // (numbers["tp"] * numbers["pp"] * numbers["cp"])
    count = -(-batch // (dp * numbers["micro_batch"]))
    layout = Layout(
        **numbers,
        dp=dp,
        micro_batches=count,
        sharding=row["sharding"],  # type: ignore[arg-type]  # a key of the file
        recompute=row["recompute"],  # type: ignore[arg-type]
        flash=row["flash"] == "yes",
        fused=row["fused"] == "yes",
        sequence_parallel=row["sequence_parallel"] == "yes",
        gathered_bytes=int(row["gathered_bytes"]),
        gradient_bytes=int(row["gradient_bytes"]),
        optimizer_bytes=int(row["optimizer_bytes"]),
    )
    return Run(
        model=known[row["model"]],
        gpu=gpu(row["gpu"], float(row["memory_gib"]), float(row["nic_gbytes_per_s"])),
        layout=layout,
        precision=row["precision"],
        method=row["method"],
        sequence=sequence,
        batch=batch,
        step_s=batch * sequence / (float(row["tokens_per_s_per_gpu"]) * gpus),
        is_apart=row["half"] == "apart",
        source=row["source"],
        assumed=row["assumed"],
    )


def gpu(model: str, memory_gib: float, nic_gbytes_per_s: float) -> Accelerator:
    """Return a GPU of a node of eight, or of an NVL72."""
    peak, (domain, nvlink) = peaks()[model], _NODES[model]
    return Accelerator(
        gpu=model,
        generation=peak.generation,
        memory=memory_gib * 2**30,
        bf16=peak.bf16 * 1e12,
        fp8=None if peak.fp8 is None else peak.fp8 * 1e12,
        hbm=peak.hbm * 1e12,
        domain=domain,
        nvlink=nvlink,
        nic=nic_gbytes_per_s * 1e9,
        per_node=_PER_NODE.get(model, domain),
    )


def errors(found: Iterable[Run], fitted: Fitted) -> list[tuple[float, Run]]:
    """Return predicted / published - 1 of each run."""
    return [(run.predicted_s(fitted) / run.step_s - 1, run) for run in found]
