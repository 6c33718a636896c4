"""What a machine has and lacks, and the one line that installs the rest."""

from __future__ import annotations

from typing import Any

from ...lifecycle.preflight.doctor import KNOWN, Machine, Need, install_command, packages_for
from .cells import pad, width
from .surface import Surface


def doctor_report(machine: Machine, found: list[Need]) -> dict[str, Any]:
    """Return what both forms tell; the JSON form is this value."""
    packages = _packages(machine, found)
    return {
        "ok": not any(need.required and not need.present for need in found),
        "distribution": machine.distribution,
        "cgroups": "v2" if machine.pure_cgroup_v2 else "hybrid or v1",
        "needs": found,
        "packages": packages,
        "install": install_command(packages, root=machine.root),
    }


def doctor_text(
    machine: Machine, found: list[Need], surface: Surface, *, what: str = "local clusters"
) -> str:
    """Return the report as text; `what` is what could or couldn't be brought up."""
    columns = max(width(need.name) for need in found)
    lines = [_row(need, columns, surface) for need in found]
    packages = _packages(machine, found)
    lacking = [need for need in found if not need.present]
    stops = [need for need in lacking if need.required]
    if packages and machine.distribution in KNOWN:
        lines += ["", f"install: {install_command(packages, root=machine.root)}"]
    elif packages:
        names = " ".join(packages)
        lines += ["", f"install these (Debian's names; this is {machine.distribution}): {names}"]
    lines += ["", _verdict(stops, lacking, surface, what)]
    return surface.plain("\n".join(lines))


def _packages(machine: Machine, found: list[Need]) -> tuple[str, ...]:
    return packages_for([need for need in found if not need.present], machine.distribution)


def _row(need: Need, columns: int, surface: Surface) -> str:
    mark = surface.paint("good", "✔")
    if not need.present:
        mark = surface.paint("error", "✘") if need.required else surface.paint("warning", "?")
    more = f"   {need.command}" if need.command and not need.present else ""
    return f"{mark} {pad(need.name, columns)}  {need.why}{more}"


def _verdict(stops: list[Need], lacking: list[Need], surface: Surface, what: str) -> str:
    if stops:
        names = ", ".join(need.name for need in stops)
        return surface.paint("error", f"{what} can't be brought up here: {names} missing")
    well = surface.paint("good", f"{what} can be brought up here")
    return f"{well}; worth a look: {', '.join(n.name for n in lacking)}" if lacking else well
