"""PyTorch's FSDP2 over two nodes, on processors: each holds its part of every layer.

The first process also trains the undivided model on the whole batch, and says how far apart the
two are.
"""

from __future__ import annotations

import copy
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

STEPS = 30
RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def scatter_sums(output, **given):
    """Give each process its part of the sums, which gloo of PyTorch 2.6 doesn't."""
    whole = given["input"].clone()
    dist.all_reduce(whole, dist.ReduceOp.SUM, given["group"])
    output.copy_(whole.chunk(WORLD)[RANK] / (WORLD if given["op"] == dist.ReduceOp.AVG else 1))


dist.reduce_scatter_tensor = scatter_sums
# What is recorded on streams of a GPU; on processors all is done when it returns.
for name in ("record_event", "wait_event", "wait_stream"):
    setattr(torch.cpu.Stream, name, lambda *_: None)

dist.init_process_group("gloo")
torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
model = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 2))
whole = copy.deepcopy(model)
mesh = init_device_mesh("cpu", (WORLD,))
for layer in (model[0], model[2], model):
    # To gather again what the backward pass needs PyTorch 2.6 does for GPUs alone.
    fully_shard(layer, mesh=mesh, reshard_after_forward=False)
points = torch.randn(64, 8)
sums = points.sum(1, keepdim=True)
wanted = torch.cat([sums.sin(), sums.cos()], 1)
losses = []
optimizers = [torch.optim.AdamW(each.parameters(), lr=0.01) for each in (model, whole)]
for _ in range(STEPS):
    for trained, optimizer, mine in zip(
        (model, whole), optimizers, (slice(RANK, None, WORLD), slice(None)), strict=True
    ):
        loss = nn.functional.mse_loss(trained(points[mine]), wanted[mine])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
far = 0.0
for mine, other in zip(model.parameters(), whole.parameters(), strict=True):
    far = max(far, (mine.full_tensor() - other).abs().max().item())
held = sum(each.to_local().numel() for each in model.parameters())
numbers = sum(each.numel() for each in whole.parameters())
if RANK == 0:
    print(f"{WORLD} processes, {held} of {numbers} numbers here, {far:.1e} from the undivided one")
    print(f"loss {losses[0]:.3f} to {losses[-1]:.3f}", flush=True)
dist.destroy_process_group()
