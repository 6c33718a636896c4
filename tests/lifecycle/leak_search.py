"""Looks for secrets in all that a cluster leaves behind, and in its processes' arguments."""

from __future__ import annotations

import base64
import gzip
import io
import os
import tarfile
import threading
from collections import Counter
from pathlib import Path
from typing import Self
from urllib.parse import quote

_CHUNK = 24
"""Bytes of a long secret that are looked for: an encoder may wrap its lines."""
_EVERY_S = 0.01
_LOOKS = 5
"""At one process: its arguments change once, when it begins to be another program."""


def spellings(secret: bytes) -> set[bytes]:
    """Return the encodings in which a secret could occur."""
    start = secret[:_CHUNK]
    found = {start, start.hex().encode(), start.hex().upper().encode()}
    found.add(quote(start).encode())
    for shift in range(3):  # base64 of a text that contains it, at any place
        padded = base64.b64encode(b"\0" * shift + start)
        found.add(padded[4 if shift else 0 : -4])
    return {spelling for spelling in found if len(spelling) > 8}  # else chance


def found_in(folder: Path) -> dict[str, bytes]:
    """Return name -> content of every file below a folder, archives unpacked."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.is_symlink():
            continue
        name, data = str(path.relative_to(folder)), path.read_bytes()
        found[name] = data
        if data.startswith(b"sha256:"):  # an object of the state, after its own hash
            data = data.partition(b"\n")[2]
        if name.endswith(".gz"):
            found[f"{name} unpacked"] = gzip.decompress(data)
        if name.endswith((".tar.gz", ".tgz", ".tar")):
            with tarfile.open(fileobj=io.BytesIO(data)) as archive:
                for member in archive:
                    if (file := archive.extractfile(member)) is not None:
                        found[f"{name}/{member.name}"] = file.read()
    return found


_HOOK = """\
import os, sys

def _told(event, args):
    if event in {"subprocess.Popen", "os.exec", "os.posix_spawn", "os.system"}:
        with open(os.environ["STARTED_PROGRAMS"], "a") as file:
            file.write(f"{event} {args[:2]!r}\\n")

sys.addaudithook(_told)
"""


def hooked(folder: Path) -> tuple[dict[str, str], Path]:
    """Have every Python write down each program that it starts, with its arguments.

    Returns the environment that does so, and the file: none is missed, however short it runs.
    """
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(_HOOK)
    there = os.environ.get("PYTHONPATH", "")
    path = os.pathsep.join([str(folder), *([there] if there else [])])
    started = folder / "started"
    return {"PYTHONPATH": path, "STARTED_PROGRAMS": str(started)}, started


class Watcher:
    """Writes down the arguments of every process that is started while it watches."""

    def __init__(self, mentioning: str = "", every_s: float = _EVERY_S) -> None:
        """Watch nothing yet; `mentioning`: a word that shows that it sees what it should."""
        self._every_s = every_s
        self.arguments: set[str] = set()
        self._mentioning = mentioning
        self._looks: Counter[str] = Counter()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    @property
    def seen(self) -> int:
        """How many of the processes had the word in their arguments."""
        return sum(self._mentioning in words for words in self.arguments)

    def __enter__(self) -> Self:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End."""
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(self._every_s):
            for name in os.listdir("/proc"):  # noqa: PTH208  # hundreds of times a second
                if not name.isdigit() or self._looks[name] >= _LOOKS:
                    continue
                self._looks[name] += 1
                try:
                    words = Path("/proc", name, "cmdline").read_bytes()
                except OSError:
                    continue
                self.arguments.add(words.replace(b"\0", b" ").decode(errors="replace"))
