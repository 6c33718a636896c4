"""`node-health`: check the node, show its state, acknowledge findings."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .checks import CheckRun, run_checks
from .expected import Expected, load
from .finding import CheckIncomplete, Finding, note, reason_of, report_of, write_report
from .parts import check_parts, parts_of
from .probe import Probe
from .rails import record_rails
from .scheduler import kubernetes, notice, slurm
from .scheduler.slow import FILE as SLOW
from .scheduler.slow import check_slow
from .state import (
    STATES,
    NodeState,
    StateRefusedError,
    after_checks,
    changed,
    diagnose,
    read_state,
    write_state,
)
from .store import Store

PARTS = "parts"


class Program:
    """The verbs; each returns what the program ends with."""

    def __init__(self, options: argparse.Namespace) -> None:
        """Set the files' paths."""
        self.options = options
        self.probe = Probe(options.root, search=options.path)
        self.store = Store(options.state_folder)

    def check(self) -> int:
        """Check the node; 0: healthy, or drained as wanted; 1: unhealthy."""
        try:
            expected = load(self.options.config)
            with self.store.locked():
                report, reason = self._run_checks(expected)
        except CheckIncomplete as error:
            node = os.uname().nodename.partition(".")[0]
            expected, reason = Expected(node=node), f"not-looked-at: {error}"
            report = {"node": node, "verdict": "unfit", "reason": reason}
        done = self._tell_scheduler(expected, reason) if self.options.drain else None
        report["scheduler"] = done
        write_report(self.options.report, report)
        if self.options.json:
            _print(json.dumps(report, indent=1))
        else:
            simulated = " (simulated)" if expected.simulated else ""
            _print((reason or f"fit{simulated}") + (f" [{done}]" if done else ""))
        return 1 if reason and (done is None or done.startswith("not reported")) else 0

    def _run_checks(self, expected: Expected) -> tuple[dict[str, Any], str]:
        memory = self.store.memory()
        found = run_checks(expected, self.probe, memory)
        slow = check_slow(expected.node, self.store, self.probe)
        findings = [*found.findings, *self._parts(found), *slow]
        before = read_state(self.store)
        state = after_checks(before, expected.burn_in, clean=not reason_of(findings))
        of_state = state.finding(expected.burn_in)
        if of_state:
            findings.insert(0, of_state)
        self.store.write("memory", memory)
        if state != before:
            write_state(self.store, state)
        return report_of(expected, found, findings, state), reason_of(findings)

    def _parts(self, found: CheckRun) -> list[Finding]:
        """Compare the parts with those kept; the first run keeps what is there."""
        kept = self.store.read(PARTS)
        if found.parts is None:
            return []
        if kept is None:
            self.store.write(PARTS, dict(found.parts))
            return [note("parts-kept", f"{len(found.parts)} serial numbers kept")]
        return list(check_parts(kept, found.parts))

    def _tell_scheduler(self, expected: Expected, reason: str) -> str | None:
        on_kubernetes = kubernetes.is_member(self.probe)
        try:
            if expected.notice and reason:
                return notice.drain(reason, self.options.root)
            if expected.notice:
                return notice.lift(self.options.root) or None if expected.resume else None
            if on_kubernetes:
                answer = kubernetes.emit(expected.node, reason, self.probe, resume=expected.resume)
                return answer or None
            if reason:
                return slurm.drain(expected.node, reason, self.probe)
            return slurm.lift(expected.node, self.probe) or None if expected.resume else None
        except CheckIncomplete as error:
            where = "Kubernetes" if on_kubernetes else "logins" if expected.notice else "Slurm"
            return f"not reported to {where}: {error}"

    def state(self) -> int:
        """Show or set the node's state."""
        with self.store.locked():
            state = read_state(self.store)
            if self.options.to:
                skip = self.options.skip_burn_in
                state = changed(state, self.options.to, self.options.reason, skip_burn_in=skip)
                write_state(self.store, state)
        if self.options.to == "burn-in":
            self._start_burn_in()
        _print(json.dumps({"state": state.state, "reason": state.reason, "clean": state.clean,
                         "dcgm": state.dcgm, "history": state.history}, indent=1))  # fmt: skip
        return 0

    def _start_burn_in(self) -> None:
        """Start the long diagnostics in a separate unit, where the cluster has them."""
        if load(self.options.config).burn_in.dcgm_level:
            self.probe.run("systemctl", "start", "--no-block", "gcluster-burn-in.service")

    def acknowledge(self) -> int:
        """Take the parts that are there, the kernel's errors, or a job's word as known."""
        with self.store.locked():
            if self.options.what == "parts":
                found = parts_of(load(self.options.config), self.probe)
                before = self._kept_parts()
                self.store.write(PARTS, dict(found))
                record_rails(self.options.root, ())  # another NIC may have another name
                for change in check_parts(before, found):
                    _print(f"known now: {change.message}")
            elif self.options.what == SLOW:
                said = self.store.read(SLOW)
                if said is not None:
                    self.store.remove(SLOW)
                    _print(f"known now: slow by the word of job {said.get('job')}")
            else:
                memory = self.store.memory()
                for message in memory.get("kernel log", {}).pop("standing", {}).values():
                    _print(f"known now: {message}")
                self.store.write("memory", memory)
        return 0

    def _kept_parts(self) -> dict[str, str]:
        """Return the parts that are kept; a list that can't be read is replaced as a whole."""
        try:
            return self.store.read(PARTS) or {}
        except CheckIncomplete:
            return {}

    def burn_in(self) -> int:
        """Run DCGM's diagnostics for a node in burn-in; 0: passed, or not configured."""
        level = load(self.options.config).burn_in.dcgm_level
        state = read_state(self.store)
        if state.state != "burn-in" or not level:
            _print(f"nothing to run: state {state.state}, DCGM level {level}")
            return 0
        verdict = diagnose(level, self.probe)
        with self.store.locked():
            now = read_state(self.store)
            if now.state == "burn-in" and now.since == state.since:
                write_state(self.store, NodeState(**{**vars(now), "dcgm": verdict}))
        _print(verdict)
        return 0 if verdict == "passed" else 1


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="node-health", description=__doc__)
    folder = Path("/var/lib/gcluster/node-health")
    parser.add_argument("--config", type=Path, default=Path("/etc/gcluster/node-health.json"))
    parser.add_argument("--state-folder", type=Path, default=folder)
    parser.add_argument("--report", type=Path, default=Path("/run/gcluster/node-health.json"))
    parser.add_argument("--root", type=Path, default=Path("/"), help="where /proc and /sys lie")
    parser.add_argument("--path", help="folders of commands ahead of the system's")
    verbs = parser.add_subparsers(dest="verb", required=True)
    check = verbs.add_parser("check", help="look at the node; exit 1 when it is unfit")
    check.add_argument("--json", action="store_true")
    check.add_argument("--drain", action="store_true", help="tell the scheduler what was seen")
    state = verbs.add_parser("state", help="show or set the node's state")
    actions = state.add_subparsers(dest="action", required=True)
    actions.add_parser("show").set_defaults(to=None)
    setting = actions.add_parser("set")
    setting.add_argument("to", choices=STATES)
    setting.add_argument("--reason", required=True)
    setting.add_argument("--skip-burn-in", action="store_true")
    known = verbs.add_parser("acknowledge", help="take what was found as known")
    known.add_argument("what", choices=["parts", "errors", SLOW])
    verbs.add_parser("burn-in", help="run DCGM's diagnostics for a node in burn-in")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a verb and return the exit code; a person's mistake is a sentence."""
    options = parse(sys.argv[1:] if arguments is None else arguments)
    program = Program(options)
    verbs = {
        "check": program.check,
        "state": program.state,
        "acknowledge": program.acknowledge,
        "burn-in": program.burn_in,
    }
    try:
        return verbs[options.verb]()
    except (CheckIncomplete, StateRefusedError) as error:
        sys.stderr.write(f"node-health: {error}\n")
        return 1


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
