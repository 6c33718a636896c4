"""The end of `up`: nodes left behind, the certificate, and what to do next."""

from __future__ import annotations

from pathlib import Path

from ...lifecycle.outcome import Exit
from ...lifecycle.up import UpResult
from .cells import printable
from .diagnostics import diagnostics_text
from .quantities import plural
from .surface import Surface


def nearby(path: str) -> str:
    """Return a path as a person here would type it: relative when it lies below this folder."""
    here = f"{Path.cwd()}/"
    return path.removeprefix(here)


def up_text(result: UpResult, target: str, surface: Surface) -> str:
    """Return what stands below the stages.

    Args:
        result: how it ended.
        target: what the person called the cluster, for the command that goes on.
        surface: what it is written on.
    """
    lines = []
    if result.certificate_path is not None:
        passed = result.exit_code is Exit.OK
        mark = surface.paint("good", "✔") if passed else surface.paint("error", "✘")
        lines.append(f"{mark} certificate {nearby(result.certificate_path)}")
    if result.diagnostics:
        lines += ["", diagnostics_text(result.diagnostics, surface)]
    told = " ".join(d.summary for d in result.diagnostics)
    untold = {host: why for host, why in result.failed_hosts.items() if host not in told}
    lines += [
        f"{surface.paint('error', '✘')} {host} was left behind: {printable(why)}"
        for host, why in untold.items()
    ]
    lines += ["", _next_steps(result, target, surface)]
    return surface.plain("\n".join(lines))


def _next_steps(result: UpResult, target: str, surface: Surface) -> str:
    name = result.cluster
    if result.exit_code is Exit.OK:
        behind = len(result.failed_hosts)
        without = f" without {plural(behind, 'node')}" if behind else ""
        proven = "ready" if result.verdict is not None else "up, and no AllReduce could be run"
        state = surface.paint("strong", f"{name} is {proven}{without}.")
        repair = f"gcluster repair {name} · " if behind else ""
        return (
            f"{state}   {repair}gcluster ssh {name} · gcluster status {name} · gcluster down {name}"
        )
    what = "failed its AllReduce" if result.exit_code is Exit.REFUSED else "is not up"
    state = surface.paint("error", f"{name} {what}.")
    return f"{state}   gcluster status {name} · go on with: gcluster up {target}"
