"""Policies: rules of an organisation as data next to the spec, in CEL.

Nothing is imported until it is known that there is a policies file: most specs have none.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from .codes import POLICY_CODES

if TYPE_CHECKING:
    from ..catalog import Catalog
    from ..diagnostics import Diagnostic
    from ..load import Loaded
    from .load import LoadedPolicies

__all__ = ["POLICY_CODES", "find_policies", "judge", "load_policies"]

_NAMES = ("policies.yaml", "policies.yml")


def find_policies(spec_file: Path) -> Path | None:
    """Return the policies file next to a spec, or None; it is not opened.

    Whatever carries the name counts, so that an unreadable file is reported and not passed by.
    """
    if spec_file.name in _NAMES:
        return None
    defaults = (spec_file.with_name(name) for name in _NAMES)
    return next((path for path in defaults if path.exists() or path.is_symlink()), None)


def load_policies(path: Path) -> LoadedPolicies:
    """Read a policies file and compile its expressions; what is wrong with it is in the result."""
    from . import load  # noqa: PLC0415  # see the module's docstring

    return load.load_policies(path)


def judge(
    policies: LoadedPolicies, loaded: Loaded, *, catalog: Catalog | None = None
) -> list[Diagnostic]:
    """Return each breach of a policy as a diagnostic located in the spec, in file order.

    Args:
        policies: what was loaded; policies that can't be compiled are left out (and are errors
            of their own in `policies.diagnostics`).
        loaded: the spec; one with errors is not judged, since what it means is not known.
        catalog: machine types for facts and prices; default: those that come with gcluster.
    """
    from . import evaluate  # noqa: PLC0415  # as above

    return evaluate.judge(policies, loaded, catalog=catalog)
