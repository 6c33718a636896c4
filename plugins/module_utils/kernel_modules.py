"""Kernel modules that others hold: taken out in order and put back, nothing left half done.

A driver's module can be exchanged only when nothing uses it: neither other modules (gdrdrv,
nvidia_fs and nvidia_peermem use nvidia's), nor programs with its devices open. NVIDIA's own driver
container stops the daemons and takes the modules out in such an order (`_unload_driver`; 2026-11).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .node import first_line, run, system_path
from .state import Failed

DAEMONS = (
    "prometheus-dcgm-exporter",
    "dcgm-exporter",
    "nvidia-dcgm",
    "nvidia-imex",
    "nvidia-fabricmanager",
    "nvidia-persistenced",
)
"""Units that keep NVIDIA's devices open, those that need others first: they are stopped in this
order and started in the other one."""
PEER_MEMORY = "nvidia_peermem"
_DKMS = re.compile(r"^(nvidia[\w-]*)/([^,]+), ([^,]+),", re.MULTILINE)


def is_loaded(name: str) -> bool:
    """Return whether the kernel has a module."""
    return system_path(f"/sys/module/{name}").exists()


def users_first(name: str) -> list[str]:
    """Return a loaded module with all that use it, users before what they use."""
    ordered: list[str] = []

    def visit(module: str) -> None:
        folder = system_path(f"/sys/module/{module}/holders")
        for user in sorted(path.name for path in folder.iterdir()) if folder.is_dir() else ():
            visit(user)
        if module not in ordered:
            ordered.append(module)

    if is_loaded(name):
        visit(name)
    return ordered


def openers(device: str) -> list[str]:
    """Return the programs that have a device open, as "name (pid)"; it is a pattern below /dev."""
    found = []
    for process in sorted(system_path("/proc").glob("[0-9]*"), key=lambda path: int(path.name)):
        try:
            links = [str(link.readlink()) for link in process.glob("fd/*")]
        except OSError:
            continue  # it has ended
        if any(re.fullmatch(device, link) for link in links):
            found.append(f"{first_line(process / 'comm') or '?'} ({process.name})")
    return found


def stop_units(units: Sequence[str]) -> list[str]:
    """Stop the units that run; return them in the order to start them in."""
    running = [u for u in units if run("systemctl", "is-active", "--quiet", u)[0] == 0]
    for unit in running:
        run("systemctl", "stop", unit)
    return running[::-1]


def start_units(units: Sequence[str]) -> None:
    """Start units. Raises Failed: one doesn't start."""
    silent = []
    for unit in units:
        code, text = run("systemctl", "start", unit)
        if code:
            silent.append(f"{unit} doesn't start: {text}")
    if silent:
        raise Failed("; ".join(silent))


def reload_module(name: str, load: Sequence[str]) -> str:
    """Load the installed version of a module instead of the one that runs.

    What used it is loaded again as well, whether or not the exchange worked.

    Args:
        name: the module.
        load: modules that must be there afterwards, in their order.

    Returns:
        Why it could not be taken out; "" where the installed one runs.

    Raises:
        Failed: a module doesn't load.
    """
    out, why = unload(name)
    load_modules([*(() if why else load), *out[::-1]])
    return why


def unload(name: str) -> tuple[list[str], str]:
    """Take a module out, what uses it first; return what went, and why not all of it."""
    out: list[str] = []
    for module in users_first(name):
        code, text = run("rmmod", module)
        if code:
            return out, f"{module} can't be taken out: {text}"
        out.append(module)
    return out, ""


def load_modules(names: Sequence[str]) -> None:
    """Load modules, each once, in their order. Raises Failed: one doesn't load."""
    for name in dict.fromkeys(each.replace("-", "_") for each in names):
        if name == PEER_MEMORY:
            load_peer_memory()
            continue
        code, text = run("modprobe", name)
        if code:
            raise Failed(f"modprobe {name}: {text}")


def load_peer_memory() -> None:
    """Load nvidia-peermem; where it doesn't load, build it again for the RDMA drivers that run.

    It is compiled against the interface of the RDMA drivers that are there at that moment, which
    must have come first (NVIDIA's driver README, "GPUDirect RDMA Peer Memory Client"; GPUDirect
    RDMA user manual, "Installing GPUDirect RDMA"; read 2026-11).

    Raises:
        Failed: it doesn't load all the same.
    """
    code, text = run("modprobe", PEER_MEMORY)
    if not code:
        return
    kernel = run("uname", "-r")[1]
    built = [found for found in _DKMS.findall(run("dkms", "status")[1]) if found[2] == kernel]
    for module, version, _ in built:
        for verb in ("build", "install"):
            named = ("-m", module, "-v", version, "-k", kernel)
            code, text = run("dkms", verb, *named, "--force", timeout_s=3600)
            if code:
                raise Failed(f"dkms {verb} {module}/{version}: {text[-500:]}")
    code, text = run("modprobe", PEER_MEMORY)
    if code:
        raise Failed(f"modprobe {PEER_MEMORY}: {text}: does it fit the RDMA drivers?")
