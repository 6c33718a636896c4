"""Archives that nodes unpack: the same content gives the same bytes, on any day, by anybody."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path

_NOT_CARRIED = frozenset({"__pycache__"})
_NOT_PORTABLE = frozenset({".pyc", ".so", ".pyd"})
"""Compiled for this machine's Python; the packages in question have pure Python beside them."""


def files_below(root: Path, at: str) -> dict[str, tuple[bytes, bool]]:
    """Return name in the archive -> (content, whether it is a program) of all files of a folder."""
    found = {}
    for path in sorted(root.rglob("*")):
        relative = path.relative_to(root)
        if path.is_dir() or path.suffix in _NOT_PORTABLE or _NOT_CARRIED & set(relative.parts):
            continue
        found[f"{at}/{relative}"] = (path.read_bytes(), bool(path.stat().st_mode & 0o100))
    return found


def packed(files: Mapping[str, tuple[bytes, bool]]) -> bytes:
    """Return a tar.gz of the files, ordered by name, without times or owners."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name in (*_folders(files), *sorted(files)):
            entry = tarfile.TarInfo(name)
            if name in files:
                content, program = files[name]
                entry.size, entry.mode = len(content), 0o755 if program else 0o644
                tar.addfile(entry, io.BytesIO(content))
            else:
                entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                tar.addfile(entry)
    squeezed = io.BytesIO()
    with gzip.GzipFile(fileobj=squeezed, mode="wb", mtime=0) as out:
        out.write(plain.getvalue())
    return squeezed.getvalue()


def _folders(files: Iterable[str]) -> list[str]:
    """Return the folders of the files, parents first."""
    found = set()
    for name in files:
        parts = name.split("/")[:-1]
        found |= {"/".join(parts[: end + 1]) for end in range(len(parts))}
    return sorted(found)
