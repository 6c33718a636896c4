"""Files that modules write: replaced as a whole, and only where they differ."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

ROOT = (0, 0)
"""Owner and group of what modules write, unless they name another."""


def write_text(
    path: Path | str, text: str, *, act: bool, mode: int = 0o644
) -> dict[str, str] | None:
    """Write a file that differs, with `act`; return Ansible's diff, None for no difference."""
    path = Path(path)
    if is_current(path, text.encode(), mode):
        return None
    before = text_of(path)
    if act:
        replace(path, text.encode(), mode)
    return {
        "before_header": str(path),
        "after_header": str(path),
        "before": before,
        "after": text,
    }


def text_of(path: Path) -> str:
    """Return a file's text, "" where there is none."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def is_current(path: Path, content: bytes, mode: int, owner: tuple[int, int] | None = None) -> bool:
    """Return whether a file is there, its owner's, with this content and mode."""
    try:
        status = path.lstat()
        wanted = (0o100000 | mode, *(owner or ROOT))
        as_wanted = (status.st_mode, status.st_uid, status.st_gid) == wanted
        return as_wanted and path.read_bytes() == content
    except OSError:
        return False


def replace(path: Path, content: bytes, mode: int, owner: tuple[int, int] | None = None) -> None:
    """Replace a file atomically; concurrent readers get the old or the new one."""
    os.umask(0o022)
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.new")
    new.unlink(missing_ok=True)  # of a run that was killed
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
    os.chown(new, *(owner or ROOT))
    new.chmod(mode)
    with contextlib.suppress(OSError):  # SELinux's label, where there is one
        os.setxattr(new, "security.selinux", os.getxattr(path, "security.selinux"))
    with new.open("rb") as file:
        os.fsync(file.fileno())
    try:
        new.replace(path)
    except OSError as error:  # container runtimes mount /etc/hosts: written it can be, not replaced
        new.unlink()
        if error.errno != errno.EBUSY:
            raise
        path.write_bytes(content)
        path.chmod(mode)
