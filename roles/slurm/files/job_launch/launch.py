#!/usr/bin/env python3
"""Starts a job's processes, and again when something ends them: at once, on the nodes left.

`run` is what a batch script ends with. It starts `srun WORDS` on as many of the allocation's usable
nodes as `--nodes` says; spares wait. An attempt ends when srun does, when a node is lost, or when
nothing was printed for `--hang` seconds. The next one starts from the newest complete checkpoint,
without going back in line; where too few nodes are left, the job is queued again.

SIGUSR1 is the notice before the end of the allocation: the processes get it, save and end, and the
job is queued again.

`guard HOST` queues the job again when HOST is lost; `clear STEP` ends what is left of a step on
this node; `stacks STEP TIME` prints where its Python processes are; `slow BEST MIDDLE` reports
this node to its health check. `run` starts these four.

Exit status: that of the last attempt.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import gate
import nodes
import processes
from copying import Copying
from journal import Journal, saved_at
from progress import Progress

CHECKPOINT = str(Path(__file__).parents[1] / "job-checkpoint.py")
COPIES = str(Path(__file__).with_name("copies.py"))
ENDS_S = 20
"""How long processes have to end before they are killed."""
GROWS_S = 30.0
"""How often a job that has shrunk looks for free nodes."""
REFUSED, REFUSED_S = 4, 45.0
"""So many attempts of a job that was queued again aren't counted, where they end so early: srun
waits for tasks that other nodes did start by KillWait and two seconds more, 32 s by default."""
GUARDS = 3
"""Nodes that watch the one of the job's script: some may be lost with it."""
TOUCH_S = 10.0
TOGETHER_S = 2.0
"""Until all nodes of a job that hangs show their stacks, which srun takes to start them."""
PORTS = (20_000, 10_000)
"""First port of a rendezvous, and how many there are: below those that Linux gives to others."""
GONE, HUNG, GROWS, NOTICE = "node lost", "hung", "grows", "notice"
REQUEUED = {NOTICE: "notice before the end of the allocation", GROWS: "more nodes are there"}


def say(text: str) -> None:
    """Print a line into the job's log."""
    sys.stdout.write(f"gcluster: {text}\n")
    sys.stdout.flush()


def listing(names: Sequence[str]) -> str:
    """Return names as words."""
    return ", ".join(names)


class Launch:
    """One run of a job: its nodes, its attempts, what ended them."""

    def __init__(self, given: argparse.Namespace) -> None:
        """Look at the allocation."""
        self.given = given
        self.words: list[str] = given.words
        self.checkpoints = os.environ.get("GCLUSTER_CHECKPOINTS", "")
        self.host = os.environ.get("SLURMD_NODENAME", "")
        self.first_address = os.environ.get("MASTER_ADDR", "")
        self.first_port = int(os.environ.get("MASTER_PORT", "20000"))
        self.attempt = self.failures = 0
        self.excluded: dict[str, str] = {}
        self.nodes: list[str] = nodes.allocated()
        self.is_noticed = False
        self.began = time.monotonic()
        self.guard: subprocess.Popen[bytes] | None = None
        self.guarded_by: list[str] = []
        folder = Path(self.checkpoints) if self.checkpoints else None
        self.journal = Journal(folder and folder / f".journal-{nodes.JOB}")
        heartbeat = folder and folder / f".alive-{nodes.JOB}"
        if heartbeat is not None:
            os.environ["GCLUSTER_HEARTBEAT"] = str(heartbeat)
        self.progress = Progress(heartbeat)
        self.gates = gate.Gates(say, self.journal.add)
        self.copying = Copying(COPIES, self.checkpoints, given.copy, self._copied)
        self.watch: nodes.Watch | None = None
        if len(self.nodes) > 1:
            self.watch = nodes.Watch(self.nodes)
            self.watch.start()

    @property
    def keeps_nodes(self) -> bool:
        """Whether the job may go on without one of its nodes: Slurm leaves it the others."""
        return bool(self.given.spares) or self.given.least < self.given.nodes

    def run(self) -> int:
        """Start attempts until one succeeds or too many failed; return the exit status."""
        signal.signal(signal.SIGUSR1, self._notice)
        self.journal.add("begin", nodes=len(self.nodes))
        if self.given.gate and len(self.nodes) > 1:
            self.excluded.update(self.gates.before(self.nodes, self.given.gate))
        while True:
            chosen = self.choose()
            if chosen is None:
                return self.requeue("too few of its nodes can be used")
            step = self.start(chosen)
            end = self.follow(step, chosen)
            if end == "0":
                self.journal.add("stop", done=True)
                return self.leave(0)
            if end == NOTICE or (end == GROWS and not self.has_room(chosen)):
                self.journal.add("stop", cause=REQUEUED[end])
                return self.requeue("")
            cause = self.cause(end, chosen)
            self.journal.add("stop", cause=cause)
            say(cause)
            if end not in (GONE, GROWS) and not self.was_refused():
                if self.failures >= self.given.restarts:
                    return self.leave(int(end) if end.isdigit() else 1)
                self.failures += 1
            self.clear(chosen)
            self.attempt += 1

    def was_refused(self) -> bool:
        """Whether nodes may have refused the step, for the number that it has.

        A node that ended suddenly keeps the sockets of its steps (slurmd removes them after five
        minutes), and a job that is queued again numbers its steps from 0 again.
        """
        is_again = os.environ.get("SLURM_RESTART_COUNT", "0") != "0"
        is_early = time.monotonic() - self.began < REFUSED_S
        return is_again and is_early and self.attempt < REFUSED

    # Nodes

    def choose(self) -> list[str] | None:
        """Return the nodes of the next attempt; None: too few are left, others may be had."""
        if self.attempt:
            self.nodes = nodes.allocated() or self.nodes
        bad = dict(nodes.unusable(self.nodes))
        if self.watch is not None:
            bad.update((node, "silent") for node in self.watch.silent(self.nodes))
        bad.update(self.excluded)
        usable = [node for node in self.nodes if node not in bad]
        chosen = usable[: self.given.nodes]
        if self.attempt == 0 and not self.keeps_nodes and not self.excluded:
            return self.nodes  # as Slurm gave them
        if bad:
            found = listing([f"{node} ({bad[node]})" for node in self.nodes if node in bad])
            say(f"without {found}" if found else "")
        return chosen if len(chosen) >= min(self.given.least, self.given.nodes) else None

    def usable(self) -> list[str]:
        """Return the nodes of the allocation that answer and start further steps."""
        bad = {*nodes.unusable(self.nodes), *self.excluded}
        silent = self.watch.silent(self.nodes) if self.watch is not None else []
        return [node for node in nodes.allocated() if node not in bad and node not in silent]

    def has_room(self, chosen: Sequence[str]) -> bool:
        """Whether the allocation itself has more usable nodes than are used."""
        return len(self.usable()[: self.given.nodes]) > len(chosen)

    # Attempts

    def start(self, chosen: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start the processes on some nodes, from the newest complete checkpoint."""
        resume = self._newest() if self.checkpoints else ""
        environment = nodes.environment()
        first = self.first_address if chosen[0] == self.host else nodes.address(chosen[0])
        environment.update(
            GCLUSTER_RESUME_FROM=resume,
            GCLUSTER_NODES=str(len(chosen)),
            MASTER_ADDR=first,
            # Another one each time: what is left of an attempt may hold its own for a while.
            MASTER_PORT=str(PORTS[0] + (self.first_port + 5_000 * self.attempt) % PORTS[1]),
            attempt=str(self.attempt),
        )
        if self.given.hang:
            environment.setdefault("PYTHONFAULTHANDLER", "1")
        if len(chosen) < self.given.nodes:
            say(f"on {len(chosen)} of {self.given.nodes} nodes")
        self.journal.add("start", nodes=len(chosen), resumed=resume, saved=saved_at(resume))
        self._keep_guard(chosen)
        self.began = time.monotonic()
        self.progress.restart()
        sizes = nodes.sizes(chosen, tasks=len(chosen) * self.given.tasks_per_node)
        name = f"--job-name=attempt-{self.attempt}"
        return subprocess.Popen(["srun", "--overlap", name, *sizes, *self.words], env=environment)

    def _newest(self) -> str:
        """Return the newest complete checkpoint, which the first attempt may fetch from a copy."""
        words = [sys.executable, CHECKPOINT, "newest", self.checkpoints]
        if self.given.copy and not self.attempt:
            words = [sys.executable, COPIES, "newest", self.checkpoints, *self.given.copy]
        done = subprocess.run(words, stdout=subprocess.PIPE, check=False)
        resume = done.stdout.decode("utf-8", "surrogateescape").strip()
        say(f"resuming from {resume or 'nothing: no checkpoint yet'}")
        return resume

    def _copied(self, lines: Sequence[str], failed: str | None) -> None:
        """Print what a copy of a checkpoint said: none of the progress of the training."""
        self.progress.look()
        for line in lines:
            say(line)
        self.progress.skip()
        self.journal.copied(failed)

    def _keep_guard(self, chosen: Sequence[str]) -> None:
        """Have other nodes watch this one, where Slurm would keep a job without its script."""
        others = [node for node in chosen if node != self.host]
        if not self.keeps_nodes or not others:
            return
        if self.guard is not None:
            if self.guard.poll() is None and set(self.guarded_by) <= set(others):
                return
            self.guard.terminate()
        self.guarded_by = others[:GUARDS]
        words = ["--job-name=guard", "--mem=0", "--cpu-bind=none", "--ntasks-per-node=1"]
        sizes = nodes.sizes(self.guarded_by, tasks=len(self.guarded_by))
        line = ["srun", "--overlap", *sizes, *words]
        self.guard = subprocess.Popen(
            [*line, sys.executable, __file__, "guard", self.host],
            env=nodes.environment(),
            stderr=subprocess.DEVNULL,
        )

    def follow(self, step: subprocess.Popen[bytes], chosen: Sequence[str]) -> str:
        """Return how an attempt ended: its exit code, or what ended it."""
        touched = grown = time.monotonic()
        first = False
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = step.wait(timeout=0.5)
                self.progress.look()
                return self._ended(code, chosen)
            now = time.monotonic()
            self.progress.look()
            if self.progress.has_begun and not first:
                first = True
                self.journal.add("first")
            self.copying.look()
            if self.is_noticed:
                say("saving before the end of the allocation")
                self.save_and_end(step)
                return NOTICE
            if self.has_lost(chosen):
                self._end(step)
                return GONE
            if self.given.hang and now - self.progress.printed_at >= self.given.hang:
                say(f"nothing was printed for {self.given.hang:.0f} s; its processes are at")
                self.stacks(chosen)
                self._end(step)
                return HUNG
            if now - touched >= TOUCH_S:
                touched = now
                self.journal.touch()
            if len(chosen) < self.given.nodes and now - grown >= GROWS_S:
                grown = now
                if self.may_grow(chosen):
                    say("more nodes are there: saving, to go on with them")
                    self.save_and_end(step)
                    return GROWS

    def has_lost(self, chosen: Sequence[str]) -> bool:
        """Whether a node is lost: one that is silent is where the other processes have ended."""
        if self.watch is None or not self.watch.silent(chosen):
            return False
        if self.watch.lost(chosen, self.progress.printed_at):
            return True
        found = self.step_id() if self.host in chosen else ""
        return bool(found) and not processes.pids_of(found)

    def _ended(self, code: int, chosen: Sequence[str]) -> str:
        """Return how srun ended; a lost node is looked for as long as its death may be unseen."""
        if self.is_noticed:
            return NOTICE
        if code == 0 or self.watch is None:
            return str(abs(code))
        until = time.monotonic() + nodes.SILENT_S + 2
        while time.monotonic() < until:
            if not self.watch.silent(chosen):
                break
            if self.watch.lost(chosen, 0.0):
                return GONE
            time.sleep(0.5)
        gone = set(chosen) - set(nodes.allocated() or chosen)
        return GONE if gone else str(abs(code))

    def may_grow(self, chosen: Sequence[str]) -> bool:
        """Whether nodes are there for more: in the allocation, or free ones in the partition."""
        if not self.checkpoints:
            return False
        if self.has_room(chosen):
            return True
        missing: int = self.given.nodes - len(chosen)
        return nodes.idle(os.environ.get("SLURM_JOB_PARTITION", "")) >= missing

    def cause(self, end: str, chosen: Sequence[str]) -> str:
        """Return why an attempt ended, as text."""
        if end == GONE:
            silent = self.watch.silent(chosen) if self.watch is not None else []
            gone = silent or sorted(set(chosen) - set(nodes.allocated()))
            return f"attempt {self.attempt} ended: {listing(gone) or 'a node'} was lost"
        if end == HUNG:
            return f"attempt {self.attempt} ended: it hung for {self.given.hang:.0f} s"
        if end == GROWS:
            return f"attempt {self.attempt} ended: more nodes are there"
        return f"attempt {self.attempt} ended with exit code {end}"

    # Ends

    def _notice(self, *_: object) -> None:
        self.is_noticed = True

    def save_and_end(self, step: subprocess.Popen[bytes]) -> None:
        """Have the processes save, and wait for their end as long as the notice allows."""
        step.send_signal(signal.SIGUSR1)
        with contextlib.suppress(subprocess.TimeoutExpired):
            step.wait(timeout=max(1, self.given.notice - ENDS_S))
            return
        self._end(step)

    def _end(self, step: subprocess.Popen[bytes]) -> None:
        """End a step; srun itself waits for ever for a node that is lost."""
        found = self.step_id()
        if found:
            nodes.output_of("scancel", found)
        with contextlib.suppress(subprocess.TimeoutExpired):
            step.wait(timeout=2)
            return
        step.kill()
        step.wait()

    def step_id(self) -> str:
        """Return the id of the attempt's step, "" where it has ended."""
        return nodes.step_of(f"attempt-{self.attempt}")

    def stacks(self, chosen: Sequence[str]) -> None:
        """Print where the processes of a step are."""
        found = self.step_id()
        if found:
            processes.on_nodes(chosen, "stacks", found, str(time.time() + TOGETHER_S))

    def clear(self, chosen: Sequence[str]) -> None:
        """End what is left of the last attempt on nodes that answer."""
        found = self.step_id()
        here = [n for n in chosen if self.watch is None or n not in self.watch.silent(chosen)]
        if found and here:
            processes.on_nodes(here, "clear", found)

    def requeue(self, why: str) -> int:
        """Put the job back in line; a job that gives way Slurm puts there itself."""
        # Requested here, it would do so once more after the next run (24.11 keeps PreemptTime).
        shown = nodes.output_of("scontrol", "show", "job", nodes.JOB) or ""
        self.copying.stop()
        say("queued again" + (f": {why}" if why else ""))
        self.journal.add("leave")
        if re.search(r"\bPreemptTime=[0-9]", shown):
            return 0
        if self.excluded:
            known = re.search(r"\bExcNodeList=(\S+)", shown)
            before = [known[1]] if known and known[1] != "(null)" else []
            names = ",".join([*before, *self.excluded])
            nodes.output_of("scontrol", "update", f"JobId={nodes.JOB}", f"ExcNodeList={names}")
        gone = self.watch.silent(self.nodes) if self.watch is not None else []
        until = time.monotonic() + nodes.GIVEN_UP_S
        while not nodes.requeue(gone) and time.monotonic() < until:
            time.sleep(5)  # without a controller; Slurm may have queued it itself
        return 1

    def leave_others(self) -> None:
        """Keep only this node, for what is left is a copy of a checkpoint."""
        if len(nodes.allocated()) > 1:
            nodes.keep([self.host])
            left = nodes.allocated()
            self.journal.add("shrink", nodes=len(left))
            say(f"until the last checkpoint is copied the job keeps {listing(left)}")

    def leave(self, code: int) -> int:
        """Report what the time was used for, and return the exit status."""
        if self.guard is not None:
            self.guard.terminate()
        if self.given.gate_after and not self.is_noticed:
            with self.copying.paused():
                for node, best, middle in self.gates.after(self.usable(), self.given.gate_after):
                    processes.on_nodes([node], "slow", best, middle)
        self.copying.finish(lambda: self.is_noticed, self.leave_others)
        self.journal.add("leave")
        # Of a command that ran once and saved nothing there is nothing to say.
        for line in self.journal.summary() if self.checkpoints or self.attempt else ():
            sys.stdout.write(line + "\n")
        sys.stdout.flush()
        return code


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    actions = parser.add_subparsers(dest="action", required=True)
    for name, metavar in (("guard", "HOST"), ("clear", "STEP"), ("stacks", "STEP")):
        actions.add_parser(name).add_argument("which", metavar=metavar)
    actions.choices["stacks"].add_argument("at", type=float, metavar="TIME")
    slow = actions.add_parser("slow")
    slow.add_argument("best")
    slow.add_argument("middle")
    run = actions.add_parser("run")
    run.add_argument("--nodes", type=int, required=True)
    run.add_argument("--least", type=int)
    run.add_argument("--spares", type=int, default=0)
    run.add_argument("--tasks-per-node", type=int, default=1)
    run.add_argument("--restarts", type=int, default=0)
    run.add_argument("--hang", type=float, default=0.0)
    run.add_argument("--gate", type=float, default=0.0)
    run.add_argument("--gate-after", type=float, default=0.0)
    run.add_argument("--notice", type=float, default=120.0)
    run.add_argument("--copy", action="append", default=[], metavar="FOLDER")
    run.add_argument("words", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    if given.action == "guard":
        nodes.guard(given.which)
    elif given.action == "clear":
        processes.clear(given.which)
    elif given.action == "stacks":
        processes.stacks(given.which, given.at)
    elif given.action == "slow":
        gate.report(given.best, given.middle)
    else:
        given.least = given.least or given.nodes
        given.words = given.words[1:] if given.words[:1] == ["--"] else given.words
        return Launch(given).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
