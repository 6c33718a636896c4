"""What a person reads when nodes failed: the node, the step, the lines that matter, the way on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...schemas.diagnostics import Diagnostic, Severity

if TYPE_CHECKING:
    from .run import ConvergeResult
    from .watch import StepFailure


def findings(result: ConvergeResult, go_on: str) -> tuple[Diagnostic, ...]:
    """Return one diagnostic a failed host.

    Args:
        result: a convergence.
        go_on: the command that goes on.
    """
    return tuple(_finding(failure, go_on) for failure in result.failures)


def reasons(result: ConvergeResult) -> dict[str, str]:
    """Return host -> why it isn't fit, for every host that didn't finish."""
    failed = {failure.host: _sentence(failure) for failure in result.failures}
    culprits = ", ".join(sorted(failed))
    waiting = dict.fromkeys(result.waiting, f"not tried: {culprits} failed first")
    return waiting | failed


def _finding(failure: StepFailure, go_on: str) -> Diagnostic:
    reached = bool(failure.task)
    role, _, phase = failure.step.partition(".")
    return Diagnostic(
        code="GC920" if reached else "GC921",
        severity=Severity.ERROR,
        summary=f"{failure.host}: {_sentence(failure)}",
        detail="\n".join(failure.lines),
        hint=f"mend it, then go on with: {go_on}   (role {role}, phase {phase})",
    )


def _sentence(failure: StepFailure) -> str:
    if not failure.task:
        return f"lost during {failure.step}: {failure.message}"
    task = failure.task.rpartition(" : ")[2]
    return f'{failure.step} failed in "{task}": {failure.message}'
