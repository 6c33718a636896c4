"""Downloads that are checked before anything of them is used."""

from __future__ import annotations

import hashlib
import tarfile
import urllib.error
from pathlib import Path

from ansible.module_utils.urls import open_url

from .state import Failed

FETCH_TIMEOUT_S = 60
BLOCK = 1 << 20


def fetch(url: str, path: Path, advice: str) -> str:
    """Download a file; return its digest as sha256:HEX.

    Args:
        url: where the file is.
        path: where to write it.
        advice: what to do where it can't be read; part of the reason.

    Raises:
        Failed: it can't be read.
    """
    digest = hashlib.sha256()
    try:
        answer = open_url(url, timeout=FETCH_TIMEOUT_S)
        with answer, path.open("wb") as out:
            while block := answer.read(BLOCK):
                digest.update(block)
                out.write(block)
    except (urllib.error.URLError, OSError, ValueError) as error:
        raise Failed(f"{url} can't be read: {error}{advice}") from error
    return f"sha256:{digest.hexdigest()}"


def unpack(archive: Path, folder: Path) -> None:
    """Unpack an archive; members that would land outside the folder are left out."""
    with tarfile.open(archive) as tar:
        members = [m for m in tar.getmembers() if not (m.name.startswith("/") or ".." in m.name)]
        tar.extractall(folder, members=members)  # noqa: S202  # of a file whose digest is known
