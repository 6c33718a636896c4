"""Runs on a controller: compares its files with a bundle's, and receives the missing ones on stdin.

usage: receive.py (compare | receive) FOLDER

compare reads a JSON list of {path, size, sha256} and prints the paths that are missing or differ;
files that are not in the list are removed. receive reads, for each file, such an object on a line
and then its bytes; a file is moved to its place only when it is complete and its checksum matches.
"""

import hashlib
import json
import os
import sys
from pathlib import Path

SEEN = ".seen"  # path -> [size, time of change, sha256]: what was hashed is not hashed again
BLOCK = 1 << 20


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file in hex (Python 3.9 has no file_digest)."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()


def compare(root: Path) -> None:
    """Print what is missing; remove files that are no longer listed."""
    wanted = {file["path"]: file for file in json.loads(sys.stdin.buffer.readline())}
    try:
        seen = json.loads((root / SEEN).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        seen = {}
    known, missing = {}, []
    for path, file in wanted.items():
        target = root / path
        status = target.stat() if target.is_file() else None
        if status is None or status.st_size != file["size"]:
            missing.append(path)
            continue
        now = [status.st_size, status.st_mtime_ns]
        had = seen.get(path, [])
        digest = had[2] if had[:2] == now else sha256_of(target)
        known[path] = [*now, digest]
        if digest != file["sha256"]:
            missing.append(path)
    for path in root.rglob("*") if root.is_dir() else ():
        if path.is_file() and str(path.relative_to(root)) not in wanted and path.name != SEEN:
            path.unlink()
    if root.is_dir():
        (root / SEEN).write_text(json.dumps(known), encoding="utf-8")
    print(json.dumps(missing))  # noqa: T201  # the answer


def receive(root: Path) -> None:
    """Take files until the input ends."""
    while line := sys.stdin.buffer.readline():
        file = json.loads(line)
        target = root / file["path"]
        target.parent.mkdir(parents=True, exist_ok=True)
        part, left, digest = target.with_name(f".{target.name}"), file["size"], hashlib.sha256()
        with part.open("wb") as out:
            while left and (block := sys.stdin.buffer.read(min(left, BLOCK))):
                out.write(block)
                digest.update(block)
                left -= len(block)
        if left or digest.hexdigest() != file["sha256"]:
            part.unlink()
            sys.exit(f"{file['path']} did not arrive whole")
        part.chmod(0o644)
        part.replace(target)


if __name__ == "__main__":
    os.umask(0o022)
    {"compare": compare, "receive": receive}[sys.argv[1]](Path(sys.argv[2]))
