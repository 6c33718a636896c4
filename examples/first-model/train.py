"""A model of letters that learns a text: Python's standard library alone, on any number of nodes.

Each process takes its part of every batch, and the first one adds their gradients up in the order
of the processes, so that the same steps give the same numbers however often the job was stopped.
It saves every GCLUSTER_CHECKPOINT_EVERY seconds and at SIGUSR1, and resumes from
GCLUSTER_RESUME_FROM. The text is this file; STEPS and PAUSE (seconds a step) come from the
environment.
"""

from __future__ import annotations

import json
import math
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
ADDRESS = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
FOLDER = Path(os.environ["GCLUSTER_CHECKPOINTS"])
EVERY = float(os.environ["GCLUSTER_CHECKPOINT_EVERY"])
STEPS, PAUSE = int(os.environ.get("STEPS", "200")), float(os.environ.get("PAUSE", "0.2"))
TEXT = Path(__file__).read_text(encoding="utf-8")
LETTERS = sorted(set(TEXT))
BATCH, WIDTH, RATE = 32, 8, 0.5
PEER_LOST_S = 10

save_soon = False


def on_notice(*_):
    """Save after this step, and end: the allocation ends soon."""
    global save_soon
    save_soon = True


class Peers:
    """Connections from every process to the first one."""

    def __init__(self):
        """Connect; the first process waits for all others."""
        if RANK:
            self.all = [self.connected()]
            self.send(self.all[0], RANK)
            return
        with socket.create_server(("", ADDRESS[1])) as server:
            found = [server.accept()[0] for _ in range(WORLD - 1)]
        ranked = {self.receive(each): each for each in found}
        self.all = [ranked[rank] for rank in range(1, WORLD)]

    @staticmethod
    def connected():
        """Return a connection to the first process, which may start later."""
        for _ in range(300):
            try:
                return socket.create_connection(ADDRESS, timeout=5)
            except OSError:
                time.sleep(0.1)
        sys.exit(f"process {RANK}: nothing answers at {ADDRESS[0]}")

    def watch(self):
        """Find out that a node is gone: without this a process waits for it for ever."""
        for peer in self.all:
            peer.settimeout(None)
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 2)
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 2)
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, PEER_LOST_S * 1000)

    @staticmethod
    def send(peer, value):
        """Send one value."""
        data = json.dumps(value).encode()
        peer.sendall(struct.pack("!I", len(data)) + data)

    @staticmethod
    def receive(peer):
        """Return the value that a process sent."""
        head = peer.recv(4, socket.MSG_WAITALL)
        if len(head) < 4:
            sys.exit(f"process {RANK}: another process ended")
        return json.loads(peer.recv(struct.unpack("!I", head)[0], socket.MSG_WAITALL))

    def total(self, numbers, flag):
        """Return the sums over all processes, and whether the flag is set in any of them."""
        if RANK:
            self.send(self.all[0], (numbers, flag))
            return self.receive(self.all[0])
        for peer in self.all:
            theirs, theirs_flag = self.receive(peer)
            numbers = [a + b for a, b in zip(numbers, theirs)]
            flag = flag or theirs_flag
        for peer in self.all:
            self.send(peer, (numbers, flag))
        return numbers, flag


def gradients(model, step):
    """Return the gradient of this process' part of a batch, with the sum of its losses last."""
    inputs, outputs = model
    size = len(LETTERS)
    found = [0.0] * (2 * size * WIDTH) + [0.0]
    chosen = random.Random(step).sample(range(len(TEXT) - 1), BATCH)[RANK::WORLD]
    for place in chosen:
        a, b = LETTERS.index(TEXT[place]), LETTERS.index(TEXT[place + 1])
        row = inputs[a * WIDTH : (a + 1) * WIDTH]
        scores = [
            sum(x * y for x, y in zip(row, outputs[c * WIDTH : (c + 1) * WIDTH]))
            for c in range(size)
        ]
        top = max(scores)
        powers = [math.exp(score - top) for score in scores]
        whole = sum(powers)
        found[-1] -= math.log(powers[b] / whole)
        for c in range(size):
            error = powers[c] / whole - (c == b)
            for i in range(WIDTH):
                found[a * WIDTH + i] += error * outputs[c * WIDTH + i]
                found[(size + c) * WIDTH + i] += error * row[i]
    return found


def save(model, step):
    """Write a checkpoint and complete it; training goes on when that fails, the last one holds."""
    folder = FOLDER / f"step-{step}"
    try:
        folder.mkdir(exist_ok=True)
        (folder / "model.json").write_text(json.dumps({"step": step, "model": model}))
        commit = "/usr/local/libexec/gcluster/job-checkpoint.py"
        subprocess.run([commit, "commit", str(folder)], check=True)
        print(f"saved {folder}", flush=True)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"NOT SAVED, the checkpoint before it holds: {error}", flush=True)


def main():
    """Train from the newest checkpoint to the last step."""
    signal.signal(signal.SIGUSR1, on_notice)
    source = random.Random(0)
    count = len(LETTERS) * WIDTH
    model, step = [[source.gauss(0, 0.1) for _ in range(count)] for _ in range(2)], 0
    resume = os.environ.get("GCLUSTER_RESUME_FROM")
    if resume:
        saved = json.loads((Path(resume) / "model.json").read_text())
        model, step = saved["model"], saved["step"]
    peers = Peers()
    peers.watch()
    last = time.monotonic()
    while step < STEPS:
        step += 1
        numbers, is_end = peers.total(gradients(model, step), save_soon)
        loss = numbers.pop() / BATCH
        for part, start in ((0, 0), (1, count)):
            model[part] = [
                x - RATE * y / BATCH for x, y in zip(model[part], numbers[start : start + count])
            ]
        if RANK == 0:
            print(f"step {step} loss {loss:.12f}", flush=True)
            if is_end or step == STEPS or time.monotonic() - last >= EVERY:
                save(model, step)
                last = time.monotonic()
        if is_end:
            break
        time.sleep(PAUSE)


main()
