"""Meaning: what a spec of the right structure must also satisfy. One concept a file.

`CHECKS` is the register of all checks; reading it here imports every module (`registry.MODULES`).
"""

from .context import CheckContext
from .registry import Check, Finding, all_checks, run_checks

__all__ = ["CHECKS", "Check", "CheckContext", "Finding", "run_checks"]

CHECKS: dict[str, Check]


def __getattr__(name: str) -> dict[str, Check]:
    """Return the whole register of checks; `run_checks` needs only a part."""
    if name != "CHECKS":
        raise AttributeError(name)
    return all_checks()
