"""A small transformer that learns the letters of a text: PyTorch, DDP, on processors.

Each process takes its part of every batch (their number divides BATCH), which follows from the
step's number, so that the same steps give the same losses however often the job was stopped.
torch.distributed.checkpoint writes what all processes hold; another number of them can read it.
Numbers have 64 bits, so that sums in another order, as DDP makes when it starts again, don't show.
It saves every GCLUSTER_CHECKPOINT_EVERY seconds and at SIGUSR1, and resumes from
GCLUSTER_RESUME_FROM. The text is this file or the one in TEXT; STEPS and PAUSE (seconds a step)
come from the environment.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.nn.parallel import DistributedDataParallel

RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
FOLDER = Path(os.environ["GCLUSTER_CHECKPOINTS"])
EVERY = float(os.environ["GCLUSTER_CHECKPOINT_EVERY"])
STEPS, PAUSE = int(os.environ.get("STEPS", "200")), float(os.environ.get("PAUSE", "0"))
CHECKPOINT = "/usr/local/libexec/gcluster/job-checkpoint.py"
TEXT = Path(os.environ.get("TEXT", __file__)).read_text(encoding="utf-8")
LETTERS = sorted(set(TEXT))
DATA = torch.tensor([LETTERS.index(letter) for letter in TEXT])
BATCH, LENGTH, WIDTH = 12, 32, 32

save_soon = False


def on_notice(*_):
    """Save after this step, and end: the allocation ends soon."""
    global save_soon
    save_soon = True


class Transformer(nn.Module):
    """Two layers that see the letters before, and none after."""

    def __init__(self):
        """Start from the same numbers in every process."""
        super().__init__()
        torch.manual_seed(0)
        self.letters = nn.Embedding(len(LETTERS), WIDTH)
        self.places = nn.Embedding(LENGTH, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 2, 2 * WIDTH, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2)
        self.out = nn.Linear(WIDTH, len(LETTERS))

    def forward(self, text):
        """Return the scores of the next letter at each place."""
        size = text.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(size)
        seen = self.letters(text) + self.places(torch.arange(size))
        return self.out(self.layers(seen, mask=mask, is_causal=True))


def part_of_batch(step):
    """Return this process' texts of a step's batch, each one letter longer than the model sees."""
    source = torch.Generator().manual_seed(step)
    starts = torch.randint(len(DATA) - LENGTH, (BATCH,), generator=source)[RANK::WORLD]
    return torch.stack([DATA[start : start + LENGTH + 1] for start in starts.tolist()])


def resume_from():
    """Return the newest complete checkpoint, "" for the beginning.

    Workers that torchrun itself has started again still have the variable of the first time, and
    only those of the node that failed are told that they were.
    """
    chosen, times = [os.environ.get("GCLUSTER_RESUME_FROM", "")], [""] * WORLD
    dist.all_gather_object(times, os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
    if set(times) != {"0"}:
        if RANK == 0:
            words = [CHECKPOINT, "newest", str(FOLDER)]
            found = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)
            chosen = [found.stdout.strip()]
            print(f"workers started again, from {chosen[0] or 'the beginning'}", flush=True)
        dist.broadcast_object_list(chosen)
    return chosen[0]


def state_of(model, optimizer, step):
    """Return what a checkpoint holds."""
    weights, moments = get_state_dict(model, optimizer)
    return {"model": weights, "optimizer": moments, "step": step}


def save(model, optimizer, step):
    """Write a checkpoint and complete it; training goes on when that fails, the last one holds."""
    folder = FOLDER / f"step-{step}"
    try:
        dcp.save(state_of(model, optimizer, step), checkpoint_id=str(folder))  # all have written
        if RANK == 0:
            subprocess.run([CHECKPOINT, "commit", str(folder)], check=True)
            print(f"saved {folder}", flush=True)
    except (OSError, dcp.CheckpointException, subprocess.CalledProcessError) as error:
        print(f"NOT SAVED, the checkpoint before it holds: {error}", flush=True)


def main():
    """Train from the newest checkpoint to the last step."""
    signal.signal(signal.SIGUSR1, on_notice)
    torch.set_default_dtype(torch.float64)
    dist.init_process_group("gloo")
    model, step = DistributedDataParallel(Transformer()), 0
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)
    resume = resume_from()
    if resume:
        state = state_of(model, optimizer, step)
        dcp.load(state, checkpoint_id=resume)
        set_state_dict(
            model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"]
        )
        step = state["step"]
    last = time.monotonic()
    while step < STEPS:
        step += 1
        text = part_of_batch(step)
        scores = model(text[:, :-1])
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), text[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        is_due = RANK == 0 and time.monotonic() - last >= EVERY
        # What all must agree on: the loss, and whether one of them is to save or to end.
        shared = torch.tensor([loss.item() / WORLD, float(is_due), float(save_soon)])
        dist.all_reduce(shared)
        if RANK == 0:
            print(f"step {step} loss {shared[0].item():.7f}", flush=True)
        if shared[1] or shared[2] or step == STEPS:
            save(model, optimizer, step)
            last = time.monotonic()
        if shared[2]:
            break
        time.sleep(PAUSE)
    dist.destroy_process_group()


main()
