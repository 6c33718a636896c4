"""DeepSpeed ZeRO over two nodes, on processors: a curve through points, saved and resumed.

The first time its second process ends like a crash after FAILS_AT steps; started again, it goes on
from its newest complete checkpoint.
"""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
from pathlib import Path

import deepspeed
import torch
import torch.distributed as dist
from torch import nn

# It would be compiled, and serves processes of one node alone.
importlib.import_module("deepspeed.comm.torch").build_shm_op = lambda: None

STEPS, EVERY = 20, 5
RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
FOLDER, RESUME = os.environ["GCLUSTER_CHECKPOINTS"], os.environ["GCLUSTER_RESUME_FROM"]
FAILS_AT = int(os.environ["FAILS_AT"])
COMMIT = ("/usr/local/libexec/gcluster/job-checkpoint.py", "commit")

parser = deepspeed.add_config_arguments(argparse.ArgumentParser())
given = parser.parse_args()
deepspeed.init_distributed("gloo")
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 1))
numbers = sum(each.numel() for each in model.parameters())
points = torch.randn(64, 8)
wanted = torch.sin(points.sum(1, keepdim=True))
mine = slice(RANK, None, WORLD)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
engine, *_ = deepspeed.initialize(args=given, model=model, optimizer=optimizer)
step = 0
if RESUME:
    saved = Path(RESUME)
    _, state = engine.load_checkpoint(str(saved.parent), tag=saved.name)
    step = state["step"]
while step < STEPS:
    step += 1
    loss = nn.functional.mse_loss(engine(points[mine]), wanted[mine])
    engine.backward(loss)
    engine.step()
    mean = loss.detach().clone()
    dist.all_reduce(mean)
    if RANK == 0:
        print(f"step {step} loss {mean.item() / WORLD:.7f}", flush=True)
    if step % EVERY == 0:
        engine.save_checkpoint(FOLDER, f"step-{step}", {"step": step}, save_latest=False)
        dist.barrier()  # all have written
        if RANK == 0:
            subprocess.run([*COMMIT, f"{FOLDER}/step-{step}"], check=True)
    if step == FAILS_AT and not RESUME and RANK == WORLD - 1:
        os._exit(3)
if RANK == 0:
    held = sum(each.numel() for each in engine.optimizer.fp32_partitioned_groups_flat)
    stage = engine.zero_optimization_stage()
    print(f"{WORLD} processes, ZeRO {stage}, {held} of {numbers} numbers here", flush=True)
dist.destroy_process_group()
