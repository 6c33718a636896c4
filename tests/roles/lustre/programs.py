"""The programs of the roles lustre_client and lustre_server, as modules."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

ROLES = Path(__file__).parents[3] / "roles"


def loaded(role: str, name: str) -> ModuleType:
    """Return a program without its last line, which runs it."""
    path = ROLES / role / "files/libexec" / name
    module = ModuleType(name)
    text = path.read_text().removesuffix("main()\n")
    exec(compile(text, str(path), "exec"), module.__dict__)  # noqa: S102  # a program of ours
    return module
