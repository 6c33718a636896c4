"""Checks a spec against the organisation's policies before anything is planned or changed.

No flag bypasses it: a policy is changed in its file, by its owner.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ...schemas.diagnostics import Diagnostic
from ...schemas.policies import find_policies, judge, load_policies
from ..cluster.outcome import Exit, LifecycleError

if TYPE_CHECKING:
    from ...schemas.catalog import Catalog
    from ...schemas.load import Loaded
    from ...schemas.policies.load import LoadedPolicies


class PolicyError(LifecycleError):
    """A policy refused; `loaded` carries the text that the diagnostics point into."""

    def __init__(self, loaded: Loaded | LoadedPolicies, *diagnostics: Diagnostic) -> None:
        """Hold the diagnostics and the text."""
        super().__init__(*diagnostics, exit_code=Exit.REFUSED)
        self.loaded = loaded


def refuse_breaches(
    spec_path: Path, loaded: Loaded, *, catalog: Catalog | None = None
) -> tuple[Diagnostic, ...]:
    """Check a spec that has no errors; return the warnings of its policies.

    Args:
        spec_path: policies.yaml is searched for in its folder.
        loaded: the spec.
        catalog: machine types; default: gcluster's with the files that the spec names.

    Raises:
        PolicyError: a policy of severity error is violated, or the policies can't be read; exit
            code REFUSED.
    """
    path = find_policies(spec_path)
    if path is None:
        return ()
    policies = load_policies(path)
    if policies.has_errors:
        raise PolicyError(policies, *policies.diagnostics)
    found = judge(policies, loaded, catalog=catalog)
    if any(diagnostic.is_error for diagnostic in found):
        raise PolicyError(loaded, *found)
    return (*policies.diagnostics, *found)
