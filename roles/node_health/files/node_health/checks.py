"""One run of all checks that apply, concurrently, within one time limit."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Callable

from .expected import Expected
from .finding import CheckIncomplete, Finding
from .gpu.amd import check_amd
from .gpu.kernel_log import check_kernel_log
from .gpu.nvidia import check_nvidia
from .gpu.nvlink import check_nvlink
from .host import (
    check_clock,
    check_disks,
    check_memory,
    check_mounts,
    check_program,
    check_smart,
)
from .network import check_nics
from .parts import parts_of
from .probe import Probe


@dataclass
class Result:
    """The result of one check; it is incomplete before `done`."""

    check: str
    findings: tuple[Finding, ...] = ()
    memory: dict[str, Any] | None = None
    seconds: float = 0
    done: bool = False


@dataclass(frozen=True)
class CheckRun:
    """One run of the checks on the node."""

    results: tuple[Result, ...]
    parts: dict[str, str] | None
    """Place -> serial number; None: it could not be read, which is a finding too."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Everything that was found, in the order of the checks."""
        return tuple(finding for result in self.results for finding in result.findings)


def run_checks(expected: Expected, probe: Probe, memory: dict[str, Any]) -> CheckRun:
    """Run the checks concurrently; one that doesn't end in time has failed.

    Args:
        expected: what the machine must have.
        probe: reads the node.
        memory: check -> its stored values; those that end replace theirs.
    """
    parts: dict[str, str] = {}

    def check_parts(_: dict[str, Any]) -> Iterable[Finding]:
        parts.update(parts_of(expected, probe))
        return ()

    checks = [*_checks(expected, probe), ("parts", check_parts)]
    results = [Result(name, memory=dict(memory.get(name, {}))) for name, _ in checks]
    threads = [
        threading.Thread(target=_run, args=(check, result), daemon=True)
        for (_, check), result in ((pair, results[i]) for i, pair in enumerate(checks))
    ]
    end = time.monotonic() + expected.timeout_s
    for thread in threads:
        thread.start()
    for index, thread in enumerate(threads):
        thread.join(max(0.0, end - time.monotonic()))
        if results[index].done:
            memory[results[index].check] = results[index].memory
        else:
            hung = Finding("check-hung", f"{results[index].check} did not end in time")
            results[index] = Result(results[index].check, (hung,))
    saw_parts = not results[-1].findings
    return CheckRun(results=tuple(results), parts=dict(parts) if saw_parts else None)


def _checks(
    expected: Expected, probe: Probe
) -> list[tuple[str, Callable[[dict[str, Any]], Iterable[Finding]]]]:
    """Return name and check of everything that is expected of this machine."""
    checks: list[tuple[str, Callable[[dict[str, Any]], Iterable[Finding]]]] = []
    gpus = expected.gpus
    if gpus and gpus.vendor == "nvidia":
        checks.append(("gpus", partial(check_nvidia, gpus, probe)))
        if gpus.nvlink:
            checks.append(("nvlink", partial(check_nvlink, gpus, probe)))
    elif gpus:
        checks.append(("gpus", lambda _: check_amd(gpus, probe)))
    if gpus:
        checks.append(("kernel log", partial(check_kernel_log, probe)))
    for nics in expected.nics:
        check = partial(
            check_nics,
            nics,
            probe,
            others=expected.nics,
            errors_per_hour=expected.link_errors_per_hour,
        )
        checks.append((f"nics {nics.kind}{' front end' if nics.front_end else ''}", check))
    checks += [
        (f"mount {mount.path}", partial(check_mounts, [mount], probe)) for mount in expected.mounts
    ]
    checks += [
        (f"hook {program.name}", partial(check_program, program, probe))
        for program in expected.programs
    ]
    most = expected.disk_most_percent
    checks.append(("disks", lambda _: check_disks(expected.disks, most, probe)))
    if not expected.simulated:
        checks.append(("smart", lambda _: check_smart(probe)))
        checks.append(("memory", lambda _: check_memory(expected.memory_gib, probe)))
    if expected.clock:
        checks.append(("clock", lambda _: check_clock(expected.clock_most_s, probe)))
    return checks


def _run(check: Callable[[dict[str, Any]], Iterable[Finding]], result: Result) -> None:
    """Run one check; whatever goes wrong in it is a finding, not a check passed."""
    began = time.monotonic()
    try:
        result.findings = tuple(check(result.memory if result.memory is not None else {}))
    except CheckIncomplete as error:
        result.findings = (Finding("not-looked-at", f"{result.check}: {error}"),)
    except Exception as error:  # noqa: BLE001  # fail closed: what broke the check may be the fault
        result.findings = (Finding("check-failed", f"{result.check}: {error!r}"),)
    result.seconds = round(time.monotonic() - began, 3)
    result.done = True
