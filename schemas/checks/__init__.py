"""Meaning: what a spec of the right structure must also satisfy. One concept a file.

`CHECKS` is the register of all checks; reading it here imports every module (`groups.py`).
"""

from typing import TYPE_CHECKING, Any

from .context import CheckContext
from .registry import Check, Finding
from .run import run_checks

if TYPE_CHECKING:
    from .registry import CHECKS

__all__ = ["CHECKS", "Check", "CheckContext", "Finding", "run_checks"]


def __getattr__(name: str) -> Any:
    """Give the whole register to whoever asks for it; `run_checks` needs only a part."""
    if name != "CHECKS":
        raise AttributeError(name)
    from . import groups, registry  # noqa: PLC0415  # imports every check

    groups.import_all()
    return registry.CHECKS
