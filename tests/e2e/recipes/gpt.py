"""Megatron Core over two nodes, on processors: a small GPT whose layers are divided in two.

Megatron takes its device and the states of random numbers from CUDA; here neither is there, and
nothing is random after the start.
"""

from __future__ import annotations

import argparse
import contextlib
import types

import torch
import torch.distributed as dist
from megatron.core import parallel_state, tensor_parallel
from megatron.core.models.gpt import GPTModel
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.transformer import TransformerConfig

torch.cuda.current_device = lambda: "cpu"
tensor_parallel.get_cuda_rng_tracker = lambda: types.SimpleNamespace(fork=contextlib.nullcontext)

SEQUENCE, LETTERS, STEPS = 16, 32, 40
parser = argparse.ArgumentParser()
for name in ("tensor", "pipeline", "context", "expert"):
    parser.add_argument(f"--{name}-model-parallel-size", f"--{name}-parallel-size", type=int)
parser.add_argument("--micro-batch-size", type=int)
parser.add_argument("--global-batch-size", type=int)
parser.add_argument("--save")
parser.add_argument("--load")
given = parser.parse_args()

dist.init_process_group("gloo")
parallel_state.initialize_model_parallel(given.tensor_model_parallel_size)
torch.manual_seed(0)
config = TransformerConfig(
    num_layers=2,
    hidden_size=32,
    num_attention_heads=4,
    tensor_model_parallel_size=given.tensor_model_parallel_size,
    use_cpu_initialization=True,
    attention_dropout=0.0,
    hidden_dropout=0.0,
)
model = GPTModel(config, get_gpt_layer_local_spec(), LETTERS, SEQUENCE)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
places = torch.arange(SEQUENCE).expand(given.global_batch_size, -1)
text = (places + torch.arange(given.global_batch_size)[:, None]) % LETTERS
mask = torch.ones(1, 1, SEQUENCE, SEQUENCE).triu(1).bool()
first = None
for _ in range(STEPS):
    loss = model(text, places, mask, labels=(text + 1) % LETTERS).mean()
    first = first if first is not None else loss.item()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
if dist.get_rank() == 0:
    size = parallel_state.get_tensor_model_parallel_world_size()
    print(
        f"{dist.get_world_size()} processes, tensor {size}, loss {first:.1f} to {loss.item():.1f}"
    )
dist.destroy_process_group()
