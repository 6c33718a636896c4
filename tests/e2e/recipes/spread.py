"""Ray Train over two nodes, on processors: a worker on each, data parallel.

With WAITS=1 the workers never end, so that the job can be cancelled.
"""

from __future__ import annotations

import os
import socket
import tempfile
import time

import ray
import ray.train
import torch
from ray.train.torch import TorchConfig, TorchTrainer, prepare_model


def train() -> None:
    """Train a line through points, and report the loss and where."""
    torch.manual_seed(0)
    model = prepare_model(torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    rank, world = (
        ray.train.get_context().get_world_rank(),
        ray.train.get_context().get_world_size(),
    )
    points = torch.randn(64, 4)
    wanted = points @ torch.tensor([[1.0], [-2.0], [3.0], [0.5]])
    for _ in range(200):
        mine = slice(rank, None, world)
        loss = torch.nn.functional.mse_loss(model(points[mine]), wanted[mine])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    places: list[str] = [""] * world
    torch.distributed.all_gather_object(places, socket.gethostname())
    while os.environ.get("WAITS"):
        time.sleep(1)
    figures = {"loss": loss.item(), "workers": world, "nodes": len(set(places))}
    with tempfile.TemporaryDirectory() as folder:
        torch.save(model.state_dict(), f"{folder}/model.pt")
        saved = ray.train.Checkpoint.from_directory(folder) if rank == 0 else None
        ray.train.report(figures, checkpoint=saved)


ray.init()
if os.environ.get("WAITS"):
    print("waits", flush=True)
done = TorchTrainer(
    train,
    torch_config=TorchConfig(backend="gloo"),
    scaling_config=ray.train.ScalingConfig(num_workers=2, placement_strategy="STRICT_SPREAD"),
    run_config=ray.train.RunConfig(name=os.environ["SLURM_JOB_ID"], storage_path="/scratch/ray"),
).fit()
print("{workers} workers on {nodes} nodes, loss {loss:.6f}".format_map(done.metrics), flush=True)
