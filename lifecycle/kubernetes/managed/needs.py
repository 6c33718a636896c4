"""What this machine needs to reach the control plane of a spec, for `gcluster doctor --spec`."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from ....schemas.derived.control_planes import managed_by
from ....schemas.load import load
from ...cluster import SpecError
from ...preflight.doctor import Need
from .login import KUBECTL, PLUGINS, missing_programs


def needs_of(path: Path, find: Callable[[str], str | None] = shutil.which) -> list[Need]:
    """Return the programs for a spec whose control plane a cloud runs; [] for all others.

    Raises:
        SpecError: the spec has errors.
    """
    loaded = load(path)
    if loaded.spec is None:
        raise SpecError(loaded)
    managed = managed_by(loaded.spec)
    if managed is None:
        return []
    plugin, missing = PLUGINS[managed], missing_programs(managed, find)
    why = {
        KUBECTL: f"asks the control plane that {managed} runs",
        plugin.program: f"logs kubectl in to {managed}",
    }
    how = {KUBECTL: "kubernetes.io/docs/tasks/tools"}
    return [
        Need(
            name,
            why.get(name, f"{plugin.program} asks it for the login"),
            name not in missing,
            command=how.get(name, plugin.install),
        )
        for name in plugin.programs
    ]
