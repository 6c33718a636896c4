"""Files as the tools of a CI server name them: relative to the folder gcluster runs in."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote


def relative(file: str) -> str | None:
    """Return a file's path below the current folder, with slashes; None when it is elsewhere.

    What is no file of this machine, such as "<stdin>", stays as it is.
    """
    below = Path(os.path.relpath(file))
    return None if below.parts[:1] == (os.pardir,) else below.as_posix()


def shown(file: str) -> str:
    """Return the path that names a file to people: below the current folder, or the whole one."""
    return relative(file) or Path(os.path.abspath(file)).as_posix()  # noqa: PTH100  # keeps links


def uri(file: str) -> tuple[str, bool]:
    """Return a file's URI, and whether it is relative to the current folder."""
    below = relative(file)
    if below is not None:
        return quote(os.fsencode(below)), True
    absolute = os.path.abspath(file)  # noqa: PTH100  # links are kept: resolve() follows them
    return f"file://{quote(os.fsencode(absolute))}", False
