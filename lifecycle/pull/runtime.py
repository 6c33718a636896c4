"""The Ansible that nodes run: this machine's own, as one archive, so that both sides agree.

Distributions have versions that are too old for the roles: ansible-core 2.14 in Debian 12 and
EL 9, ansible 2.10 in Ubuntu 22.04. Ansible and what it imports are pure Python, so one archive
fits every node with Python 3.11 to 3.13.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from importlib.metadata import distribution, version
from importlib.util import find_spec
from pathlib import Path

from .archive import files_below, packed

_PACKAGES: Mapping[str, str] = {
    "ansible": "ansible-core",
    "jinja2": "Jinja2",
    "markupsafe": "MarkupSafe",
    "packaging": "packaging",
    "yaml": "PyYAML",
}
"""What `ansible-playbook` imports -> its distribution. `cryptography` is for its vault alone."""

_RECIPE = 2
"""Raise it when this module packs otherwise."""


def runtime(cache: Path) -> bytes:
    """Return the archive; it is made once for each set of versions and kept in `cache`."""
    named = " ".join(f"{name}={version(name)}" for name in _PACKAGES.values())
    key = hashlib.sha256(f"{_RECIPE} {named}".encode()).hexdigest()[:16]
    kept = cache / f"ansible-{key}.tar.gz"
    if kept.exists():
        return kept.read_bytes()
    files: dict[str, tuple[bytes, bool]] = {}
    for package, name in _PACKAGES.items():
        files |= files_below(_folder(package), package)
        # Ansible asks importlib.metadata for versions, and that is where it looks.
        about = (distribution(name).read_text("METADATA") or "").encode()
        folder = f"{name.replace('-', '_').lower()}-{version(name)}.dist-info"
        files[f"{folder}/METADATA"] = (about, False)
    content = packed(files)
    half = kept.with_suffix(".new")
    half.write_bytes(content)
    half.replace(kept)
    return content


def _folder(package: str) -> Path:
    found = find_spec(package)
    if found is None or found.origin is None:
        raise RuntimeError(f"{package} is not installed beside gcluster")
    return Path(found.origin).parent
