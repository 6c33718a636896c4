"""What keeps a cluster from coming up whose control plane a cloud runs, said before anything."""

from __future__ import annotations

import shutil
from collections.abc import Callable

from ....schemas.derived.control_planes import managed_by
from ....schemas.diagnostics import Diagnostic, Severity
from ....schemas.spec import ClusterSpec
from .login import missing_programs, refusal


def managed_findings(
    spec: ClusterSpec, find: Callable[[str], str | None] = shutil.which
) -> tuple[Diagnostic, ...]:
    """Return what this machine and the spec lack; () where no cloud runs the control plane."""
    managed = managed_by(spec)
    if managed is None:
        return ()
    found = []
    if missing := missing_programs(managed, find):
        found.append(refusal(managed, missing))
    if spec.smoke.allreduce.image is None:
        found.append(
            Diagnostic(
                code="GC1041",
                severity=Severity.ERROR,
                summary=f"nodes of {managed} have no MPI of ours: the AllReduce needs an image",
                path=("smoke", "allreduce"),
                hint="name one with sshd, mpirun and nccl-tests: smoke: {allreduce: {image: "
                "registry.example.edu/allreduce:1.4}}",
            )
        )
    return tuple(found)
