"""Write a spec that was mended: at once or not at all, and only over the text that was read."""

from __future__ import annotations

from pathlib import Path

from ..stacks import atomic
from .outcome import Exit, failure

_UTF8_MARK = b"\xef\xbb\xbf"


def rewrite(file: str, before: str, after: str) -> None:
    """Put `after` in the place of `before`; permissions, a byte order mark and links stay.

    Raises:
        LifecycleError: the file holds something else by now; it is left as it is.
        OSError: it can't be read or written.
    """
    path = Path(file).resolve()
    content = path.read_bytes()
    mark = _UTF8_MARK if content.startswith(_UTF8_MARK) else b""
    if content != mark + before.encode():
        raise failure(
            "GC952",
            f"{file} was changed by something else in the meantime; it is left as it is",
            hint="run the same command again",
            exit_code=Exit.FAILED,
        )
    atomic.write(path, mark + after.encode(), mode=path.stat().st_mode & 0o7777)
