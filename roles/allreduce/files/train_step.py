#!/usr/bin/env python3
"""Train a small transformer over all ranks of a Slurm step, and print its FLOP/s and MFU.

It needs PyTorch alone, as any image for training has it, and is started by srun, one rank a GPU.
Data are random numbers that every rank draws by itself; gradients are summed over all ranks after
each step, as in data-parallel training. Ranks that no longer have the same weights, or a loss that
is no number, are wrong results. The last line is JSON for `gcluster acceptance`.

Floating point operations a token are 6 N + 12 L h s, of N parameters without embeddings, L layers,
h hidden units and s tokens (Chowdhery et al., PaLM, appendix B); MFU is their rate over the peak.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch import nn

MARK = "@measure "
PORT = 29_400
"""Rank 0 listens there, or on one of 1,000 ports above: by the job's number."""


class Block(nn.Module):  # type: ignore[misc]  # torch isn't here
    """Attention and a perceptron, each after a norm and with a residual connection."""

    def __init__(self, hidden: int, heads: int) -> None:
        """Make its weights."""
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(hidden), nn.LayerNorm(hidden)])
        self.inputs = nn.Linear(hidden, 3 * hidden, bias=False)
        self.output = nn.Linear(hidden, hidden, bias=False)
        self.perceptron = nn.Sequential(
            nn.Linear(hidden, 4 * hidden, bias=False),
            nn.GELU(),
            nn.Linear(4 * hidden, hidden, bias=False),
        )

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Return the states after the block."""
        batch, length, hidden = states.shape
        parts = self.inputs(self.norms[0](states)).split(hidden, dim=2)
        shape = (batch, length, self.heads, hidden // self.heads)
        query, key, value = (part.view(shape).transpose(1, 2) for part in parts)
        seen = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        states = states + self.output(seen.transpose(1, 2).reshape(batch, length, hidden))
        return states + self.perceptron(self.norms[1](states))


class Model(nn.Module):  # type: ignore[misc]  # torch isn't here
    """Blocks between an embedding and a head over the same vocabulary."""

    def __init__(self, layers: int, hidden: int, heads: int, words: int) -> None:
        """Make the weights of all blocks."""
        super().__init__()
        self.embedding = nn.Embedding(words, hidden)
        self.blocks = nn.Sequential(*(Block(hidden, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(hidden)
        self.head = nn.Linear(hidden, words, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the mean loss of guessing each next token."""
        guesses = self.head(self.norm(self.blocks(self.embedding(tokens[:, :-1]))))
        return nn.functional.cross_entropy(guesses.flatten(0, 1).float(), tokens[:, 1:].flatten())


def flops_per_token(parameters: int, layers: int, hidden: int, tokens: int) -> float:
    """Return the floating point operations of one token, forward and backward.

    Args:
        parameters: that are multiplied with each token: all but the embedding's.
        layers: blocks of the model.
        hidden: width of its states.
        tokens: length of a sequence.
    """
    return 6.0 * parameters + 12.0 * layers * hidden * tokens


def arguments() -> argparse.Namespace:
    """Return the command line's options."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--master", required=True, help="node of rank 0")
    parser.add_argument("--peak-tflops", type=float, default=0, help="of a GPU; 0: not known")
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--hidden", type=int, default=2048)
    parser.add_argument("--heads", type=int, default=16)
    parser.add_argument("--words", type=int, default=32_000)
    parser.add_argument("--tokens", type=int, default=2048, help="of a sequence")
    parser.add_argument("--batch", type=int, default=4, help="sequences of a rank and step")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--warm-up", type=int, default=5, help="steps that don't count")
    return parser.parse_args()


def main() -> int:
    """Train, and print the figures from rank 0."""
    given = arguments()
    rank, ranks = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"])
    on_gpu = torch.cuda.is_available()
    device = torch.device("cpu")
    if on_gpu:
        device = torch.device("cuda", int(os.environ["SLURM_LOCALID"]))
        torch.cuda.set_device(device)
    port = PORT + int(os.environ.get("SLURM_JOB_ID", "0")) % 1000
    dist.init_process_group(
        "nccl" if on_gpu else "gloo",
        init_method=f"tcp://{given.master}:{port}",
        rank=rank,
        world_size=ranks,
    )
    torch.manual_seed(1)
    model = Model(given.layers, given.hidden, given.heads, given.words).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    trained = nn.parallel.DistributedDataParallel(model, device_ids=[device] if on_gpu else None)
    torch.manual_seed(2 + rank)  # the weights are alike, the data is not
    seconds, losses = [], []
    for _ in range(given.warm_up + given.steps):
        shape = (given.batch, given.tokens + 1)
        tokens = torch.randint(given.words, shape, device=device)
        began = time.perf_counter()
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss = trained(tokens)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())  # waits for the GPU
        seconds.append(time.perf_counter() - began)
    wrong = disagreement(model, device) + int(not all(map(math.isfinite, losses)))
    if rank == 0:
        counted = sum(p.numel() for p in model.parameters()) - model.embedding.weight.numel()
        operations = flops_per_token(counted, given.layers, given.hidden, given.tokens)
        tokens_per_s = given.batch * given.tokens / statistics.median(seconds[given.warm_up :])
        tflops = tokens_per_s * operations / 1e12
        answer = {"tokens": tokens_per_s, "tflops": tflops, "wrong": wrong}
        if given.peak_tflops:
            answer["mfu"] = 100 * tflops / given.peak_tflops
        sys.stdout.write(f"{MARK}{json.dumps(answer)}\n")
    dist.destroy_process_group()
    return 0


def disagreement(model: nn.Module, device: torch.device) -> int:
    """Return how many parameters are not the same on all ranks, bit by bit."""
    sums = [p.detach().double().sum() for p in model.parameters()]
    least = torch.stack(sums).to(device)
    most = least.clone()
    dist.all_reduce(least, op=dist.ReduceOp.MIN)
    dist.all_reduce(most, op=dist.ReduceOp.MAX)
    return int((least != most).sum().item())


if __name__ == "__main__":
    raise SystemExit(main())
