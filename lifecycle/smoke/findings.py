"""What a person is told beside the verdict: parts, nodes left out, and where the fault is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ...schemas.derived.hostlist import fold
from ...schemas.diagnostics import Diagnostic, Severity
from .bisect import Fault
from .launch import Launch

if TYPE_CHECKING:
    from .search import Located


def in_parts(todo: tuple[Launch, ...]) -> Diagnostic:
    """Say which AllReduces there are when one can't hold all nodes."""
    return Diagnostic(
        code="GC932",
        severity=Severity.NOTE,
        summary="no one partition and fabric holds all compute pools: there are several AllReduces",
        detail=", ".join(f"{launch.partition} ({fold(launch.nodes)})" for launch in todo),
        hint="a partition with all pools of a fabric lets one AllReduce test them together",
    )


def left_out(nodes: Iterable[str]) -> Diagnostic:
    """Say which nodes were not tested."""
    return Diagnostic(
        code="GC935",
        severity=Severity.WARNING,
        summary=f"{fold(nodes)} did not take part: busy, or not fit for jobs",
        hint="gcluster smoke tests them when they are idle",
    )


def located_fault(located: Located, nodes: str) -> Diagnostic:
    """Say where the fault of a failed AllReduce is."""
    found = fault_lines(located)
    return Diagnostic(
        code="GC934",
        severity=Severity.ERROR,
        summary="; ".join(found) or f"every smaller AllReduce over {nodes} passed",
        detail=f"{located.tests} smaller AllReduces in {located.rounds} rounds over {nodes}",
        hint="look at the NICs, cables and GPUs of what is named; drain it to go on without",
    )


def fault_lines(located: Located) -> list[str]:
    """Return each fault in words: "node gpu003", "the link between gpu001 and gpu007"."""
    return [*map(_words, located.faults), *(f"rail {rail}" for rail in located.rails)]


def _words(fault: Fault) -> str:
    if fault.kind == "node":
        return f"node {fault.nodes[0]} is at fault"
    if fault.kind == "link":
        return f"the link between {' and '.join(fault.nodes)} is at fault"
    if fault.kind == "blocks":
        return f"what connects the blocks of {' and '.join(fault.nodes)} is at fault"
    return f"the fault is among {fold(fault.nodes)}: smaller parts can't tell which"
