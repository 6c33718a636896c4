"""Data parallel by Hugging Face accelerate, on processors: a line through points."""

from __future__ import annotations

import torch
from accelerate import Accelerator
from accelerate.utils import InitProcessGroupKwargs

# Debian's PyTorch has MPI too, which accelerate prefers where no GPU is.
accelerator = Accelerator(kwargs_handlers=[InitProcessGroupKwargs(backend="gloo")])
torch.manual_seed(0)
points = torch.randn(64, 4)
data = torch.utils.data.TensorDataset(points, points @ torch.tensor([1.0, -2.0, 3.0, 0.5]))
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader(data, batch_size=8)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for _ in range(20):
    for given, wanted in loader:
        loss = torch.nn.functional.mse_loss(model(given).squeeze(1), wanted)
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()
mean = accelerator.reduce(loss.detach(), "mean").item()
if accelerator.is_main_process:
    print(f"{accelerator.num_processes} processes, {len(loader)} batches each, loss {mean:.6f}")
accelerator.end_training()
