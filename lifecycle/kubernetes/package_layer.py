"""A layer with a few of Debian's programs and their libraries: taken apart, not installed."""

from __future__ import annotations

import io
import re
import subprocess
import tarfile
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from ...stacks.local.image import missing_tool
from ...stacks.provider import provider_error
from ..outcome import LifecycleError
from .image_archive import Layer, packed

_KEPT = re.compile(
    r"usr/s?bin/[^/]+$|usr/lib64/[^/]+$|usr/lib/[^/]+-linux-gnu/(lib|ld-)[^/]*\.so[^/]*$"
)
_LINKS = ("bin", "sbin", "lib", "lib64")
"""Of a merged /usr; the package that makes them isn't among those taken apart."""
_PROTOCOLS = "".join(
    f"{name}\t{number}\n"
    for name, number in (("icmp", 1), ("tcp", 6), ("udp", 17), ("ipv6-icmp", 58), ("sctp", 132))
)
"""/etc/protocols: without it nft lists protocols by their numbers, which no kube-proxy that starts
again takes for the names that it wrote."""
_LIMIT_S = 600


def package_layer(packages: Sequence[str], suite: str, scratch: Path) -> Layer:
    """Return a layer with what these packages, and those they depend on, run with.

    Args:
        packages: names.
        suite: of Debian.
        scratch: where archives may lie meanwhile.

    Raises:
        LifecycleError: GC912 with mmdebstrap's own words, or what to install.
    """
    lacking = missing_tool()
    if lacking is not None:
        raise LifecycleError(*lacking.diagnostics)
    with TemporaryDirectory(dir=scratch) as folder:
        root = f"{folder}/root.tar"
        command = [
            "mmdebstrap",
            "--variant=extract",
            f"--include={','.join(packages)}",
            suite,
            root,
        ]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_LIMIT_S
        )
        if done.returncode != 0:
            errors = [line for line in done.stderr.splitlines() if line.startswith("E:")]
            why = errors[0] if errors else "mmdebstrap failed"
            told = provider_error("GC912", f"packages for images were not fetched: {why}")
            raise LifecycleError(*told.diagnostics)
        with tarfile.open(root) as archive:
            return packed(_cut(archive))


def _cut(archive: tarfile.TarFile) -> bytes:
    """Return the programs and libraries of a root file system as an archive without dates.

    The names of protocols are our own: the package that has them configures a whole system.
    """
    buffer = io.BytesIO()
    kept = {
        name: member
        for member in archive.getmembers()
        if _KEPT.match(name := member.name.removeprefix("./")) and not member.isdir()
    }
    with tarfile.open(fileobj=buffer, mode="w") as out:
        for name in _LINKS:
            link = tarfile.TarInfo(name)
            link.type, link.linkname, link.mode = tarfile.SYMTYPE, f"usr/{name}", 0o777
            out.addfile(link)
        protocols = tarfile.TarInfo("etc/protocols")
        protocols.size, protocols.mode = len(_PROTOCOLS), 0o644
        out.addfile(protocols, io.BytesIO(_PROTOCOLS.encode()))
        for name, member in sorted(kept.items()):
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = member.type, member.mode
            entry.size, entry.linkname = member.size, member.linkname
            out.addfile(entry, archive.extractfile(member) if member.isreg() else None)
    return buffer.getvalue()
