"""Package repositories as apt and dnf read them: the files of one, and where its key lies."""

from __future__ import annotations

import re
import shutil
import urllib.parse
from pathlib import Path
from typing import Any

Repository = dict[str, Any]
APT_SOURCES = Path("/etc/apt/sources.list.d")
APT_ONLY_SOURCES = Path("/etc/apt/gcluster-sources.d")
APT_KEYS = Path("/etc/apt/keyrings")
APT_PREFERENCES = Path("/etc/apt/preferences.d")
DNF_REPOSITORIES = Path("/etc/yum.repos.d")
DNF_KEYS = Path("/etc/pki/rpm-gpg")
OURS = "gcluster-"
HEAD = "# Written by gcluster. Changes made here are lost; change the spec.\n"
PREFERRED, OTHERWISE = 600, 100
DEBIAN_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def uses_apt() -> bool:
    """Say whether this node's packages are apt's."""
    return shutil.which("apt-get") is not None


def key_path(name: str) -> Path:
    """Return where a source's key is trusted from."""
    return APT_KEYS / f"{OURS}{name}.gpg" if uses_apt() else DNF_KEYS / f"RPM-GPG-KEY-{OURS}{name}"


def apt_url(url: str) -> str:
    """Return a repository's URL in apt's own spelling."""
    return re.sub("^file:/+", "file:/", url).rstrip("/") + "/"


def apt_source(repository: Repository, architecture: str, keyring: Path) -> str:
    """Return a deb822 source."""
    components = repository["components"]
    return "".join(
        (
            HEAD,
            "Types: deb\n",
            f"URIs: {apt_url(repository['url'])}\n",
            f"Suites: {repository['suite']}\n",
            f"Components: {' '.join(components)}\n" if components else "",
            f"Architectures: {DEBIAN_ARCHITECTURES[architecture]}\n",
            f"Signed-By: {keyring}\n",
        )
    )


def apt_preferences(repository: Repository) -> str:
    """Return pins: the source's own packages from it, anything else only where nobody has it."""
    site = urllib.parse.urlsplit(repository["url"]).hostname or ""
    pin = f'Pin: origin "{site}"\n'
    own = " ".join(repository["packages"])
    first = f"Package: {own}\n{pin}Pin-Priority: {PREFERRED}\n\n" if own else ""
    return f"{HEAD}{first}Package: *\n{pin}Pin-Priority: {OTHERWISE}\n"


def dnf_repository(repository: Repository, key: Path) -> str:
    """Return a repository file of dnf."""
    lines = {
        "name": f"{repository['name']} (gcluster)",
        "baseurl": repository["url"],
        "enabled": 1,
        "gpgcheck": 1,
        "repo_gpgcheck": int(repository["signed_index"]),
        "gpgkey": f"file://{key}",
    }
    body = "".join(f"{key}={value}\n" for key, value in lines.items())
    return f"{HEAD}[{OURS}{repository['name']}]\n{body}"


def repository_files(repository: Repository, architecture: str, sources: Path) -> dict[Path, str]:
    """Return path -> text of what a repository needs beside its key."""
    name, key = repository["name"], key_path(repository["name"])
    if uses_apt():
        return {
            sources / f"{OURS}{name}.sources": apt_source(repository, architecture, key),
            APT_PREFERENCES / f"{OURS}{name}": apt_preferences(repository),
        }
    return {DNF_REPOSITORIES / f"{OURS}{name}.repo": dnf_repository(repository, key)}


def replace(path: Path, content: bytes) -> None:
    """Put a file in place at once, readable by all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_bytes(content)
    fresh.chmod(0o644)
    fresh.replace(path)
