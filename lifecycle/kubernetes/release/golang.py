"""Compiles Go programs, with go from this machine or from a container of Debian 13.

Any go (1.21 or newer) fetches the toolchain that programs.yaml names as a Go module and runs that,
so the same bytes come out everywhere.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ....stacks.local.engine import find_engine, runtime_flags
from ....stacks.local.image.base_image import ensure_base
from ...cluster import places
from ...cluster.outcome import LifecycleError, failure

_SWITCHES_FROM = (1, 21)
"""Go fetches other toolchains from this version on: https://go.dev/doc/toolchain."""
_BUILD_LIMIT_S = 3600
_SETTINGS = {
    "CGO_ENABLED": "0",
    "GOFLAGS": "-buildvcs=false -trimpath -mod=readonly",
    "GOOS": "linux",
    "GOGC": "400",
}
"""GOGC: the compiler takes more memory before it collects its garbage, and a fifth less time. None
at all (GOGC=off below 2 GiB) gains no more: 80.6 s against 80.2 s for client-go and the API
server's endpoints on two cores (2026-11)."""
_PASSED_ON = ("GOPROXY", "GOSUMDB", "GONOSUMDB", "GONOSUMCHECK", "HTTPS_PROXY", "https_proxy")
"""Settings of this machine for module proxies."""
_AUTHORITIES = Path("/etc/ssl/certs")


def compile_program(
    folder: Path,
    out: Path,
    toolchain: str,
    link: Mapping[str, str],
    architecture: str,
    *,
    compiled: Callable[[int], None] = lambda _: None,
) -> None:
    """Compile the module in `folder` to the static program `out`.

    Args:
        folder: of a module whose go.sum is complete.
        out: the program's path; its folder exists.
        toolchain: "go1.25.4".
        link: variables that the linker sets.
        architecture: as Go calls it: "amd64".
        compiled: called with the number of packages compiled so far.

    Raises:
        LifecycleError: GC939 with the compiler's message, or that no Go is available.
    """
    flags = [f"-X={name}={value}" for name, value in sorted(link.items())]
    # The linker drops what debuggers read anyway: not to write it saves a tenth of the compilation.
    lean = ["-gcflags", "all=-dwarf=false", "-ldflags", " ".join(["-s", "-w", *flags])]
    arguments = ["build", "-v", *lean, "-o"]
    settings = {**_SETTINGS, "GOTOOLCHAIN": toolchain, "GOARCH": architecture}
    go = host_go()
    environment = dict(os.environ)
    if go is None:
        command = _in_container(arguments, settings, folder, out)
    else:
        command = [go, *arguments, str(out), "."]
        environment |= settings
    _run(command, folder, environment, compiled)


def host_go() -> str | None:
    """Return the path of a go that can fetch other toolchains; None where there is none."""
    found = shutil.which("go")
    if found is None:
        return None
    stdout = subprocess.run(
        [found, "env", "GOVERSION"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "GOTOOLCHAIN": "local"},
    ).stdout
    version = re.match(r"go(\d+)\.(\d+)", stdout)
    new = version is not None and (int(version[1]), int(version[2])) >= _SWITCHES_FROM
    return found if new else None


def _in_container(
    arguments: Sequence[str],
    settings: Mapping[str, str],
    folder: Path,
    out: Path,
) -> list[str]:
    """Return what compiles with Debian 13's go, in a container of the local nodes' base image."""
    engine = find_engine()
    cache = places.private_directory(places.cache_home() / "go")
    base = ensure_base(engine, places.private_directory(places.cache_home()))
    given = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    environment = {**settings, **given, "GOPATH": "/cache/path", "GOCACHE": "/cache/build"}
    install = "apt-get update -q && apt-get install -yq --no-install-recommends golang-go"
    script = f'{{ {install}; }} >&2 && cd /source && exec go "$@"'
    return [
        *(engine.executable, "run", "--rm", *runtime_flags(engine.facts)),
        *(f"--volume={folder}:/source:ro", f"--volume={out.parent}:/out"),
        *(f"--volume={cache}:/cache", f"--volume={_AUTHORITIES}:{_AUTHORITIES}:ro"),
        *(f"--env={name}={value}" for name, value in environment.items()),
        *(base, "/bin/sh", "-c", script, "go", *arguments, f"/out/{out.name}", "."),
    ]


_PACKAGE = re.compile(r"[a-z][\w./~-]*")
"""How go names a package that it has begun to compile (-v): a line of its own."""


def _run(
    command: list[str],
    folder: Path,
    environment: dict[str, str],
    compiled: Callable[[int], None],
) -> None:
    """Run a compiler to its end, and report how many packages it has started."""
    lines: list[str] = []
    packages = 0
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    ) as running:
        late = threading.Timer(_BUILD_LIMIT_S, running.kill)
        late.start()
        for line in running.stderr or ():
            if _PACKAGE.fullmatch(line.strip()):
                packages += 1
                compiled(packages)
            elif not line.startswith("go: downloading"):
                lines.append(line.rstrip("\n"))
        code = running.wait()
        in_time = late.is_alive()
        late.cancel()
    if not in_time:
        raise _not_compiled(folder, f"not done in {_BUILD_LIMIT_S} s", "")
    if code != 0:
        raise _not_compiled(
            folder, lines[-1] if lines else "no output of go", "\n".join(lines[-20:])
        )


def _not_compiled(folder: Path, why: str, detail: str) -> LifecycleError:
    return failure(
        "GC939",
        f"{folder.name} was not compiled: {why}",
        detail=detail,
        hint="does this machine reach a Go module proxy (go env GOPROXY)?",
    )
