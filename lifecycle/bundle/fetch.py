"""Files over HTTP into a bundle: each once, gone on where it was cut off, kept when it is right."""

from __future__ import annotations

import hashlib
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from ...schemas.diagnostics import Diagnostic, Severity
from ...stacks.io.https import opened

INCOMING = ".incoming"
"""Folder of a bundle for what isn't whole yet."""
_AT_ONCE = 8
_BLOCK = 1 << 20
_TIMEOUT_S = 60
_TRIES = 3
_PARTIAL = 206


class RequiredFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of the bundle."""

    url: str
    path: str
    """In the bundle's folder."""
    size: int | None
    """Bytes; None: not known before."""
    sha256: str
    roles: str
    """The role or add-on that needs it, for messages."""


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_complete(path: Path, size: int | None, sha256: str) -> bool:
    """Return whether a file exists with the right checksum."""
    if not path.is_file() or (size is not None and path.stat().st_size != size):
        return False
    return sha256_of(path) == sha256


def fetch_all(
    wanted: Iterable[RequiredFile], out: Path, emit: Callable[[int, int, str], None]
) -> tuple[int, list[Diagnostic]]:
    """Fetch what isn't there; return the bytes fetched and a finding for each that failed.

    Args:
        wanted: files; the same path only once.
        out: the bundle's folder.
        emit: called with how many are done, how many there are, and which was the last.
    """
    files = list({file.path: file for file in wanted}.values())
    (out / INCOMING).mkdir(parents=True, exist_ok=True)
    lock, done, fetched = threading.Lock(), 0, 0
    findings: list[Diagnostic] = []

    def one(file: RequiredFile) -> None:
        nonlocal done, fetched
        problem, size = _fetch(file, out)
        with lock:
            done, fetched = done + 1, fetched + size
            if problem:
                findings.append(_finding(file, problem))
            emit(done, len(files), file.path)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(one, files))
    return fetched, sorted(findings, key=lambda finding: finding.summary)


def _fetch(file: RequiredFile, out: Path) -> tuple[str, int]:
    """Return why a file can't be had ("" when it is there), and how many bytes came."""
    target = out / file.path
    if is_complete(target, file.size, file.sha256):
        return "", 0
    part, problem, came = incoming(file, out), "", 0
    for _ in range(_TRIES):
        try:
            came += _download(file.url, part, file.size)
        except (urllib.error.URLError, OSError, ValueError) as error:
            problem = str(error)
            continue
        if is_complete(part, file.size, file.sha256):
            target.parent.mkdir(parents=True, exist_ok=True)
            part.chmod(0o644)
            part.replace(target)
            return "", came
        problem = "its content differs from the signed index or the spec"
        part.unlink(missing_ok=True)
    return problem, came


def incoming(file: RequiredFile, out: Path) -> Path:
    """Return where a file grows: its own place, for two may have the same content."""
    key = hashlib.sha256(f"{file.path}\0{file.sha256}".encode()).hexdigest()
    return out / INCOMING / f"{key}.part"


def _download(url: str, part: Path, size: int | None) -> int:
    """Append to what came before; return the bytes that came now."""
    have = part.stat().st_size if part.exists() else 0
    if size is not None and have > size:
        part.unlink()
        have = 0
    if size is not None and have == size:
        return 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})  # noqa: S310  # the spec's and the catalog's URLs
    came = 0
    with opened(request, timeout=_TIMEOUT_S) as answer:
        goes_on = getattr(answer, "status", None) == _PARTIAL
        with part.open("ab" if goes_on else "wb") as file:
            while block := answer.read(_BLOCK):
                file.write(block)
                came += len(block)
    return came


def _finding(file: RequiredFile, problem: str) -> Diagnostic:
    return Diagnostic(
        code="GC939",
        severity=Severity.ERROR,
        summary=f"{file.path}, which {file.roles} requires, can't be fetched: {problem}",
        detail=file.url,
        hint="run the same command again: it fetches what is missing, and goes on with the rest",
    )
