"""Package repositories as apt and dnf read them: the files of one, and where its key lies."""

from __future__ import annotations

import os
import re
import shutil
import urllib.parse
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

Repository = dict[str, Any]
APT_LIST = Path("/etc/apt/sources.list")
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


def this_distribution() -> tuple[str, str]:
    """Return the distribution as specs write it, and the architecture."""
    lines = Path("/etc/os-release").read_text().splitlines()
    options = dict(line.split("=", 1) for line in lines if "=" in line)
    options = {key: value.strip("\"'") for key, value in options.items()}
    name, version = options["ID"], options.get("VERSION_ID", "")
    if name in {"rhel", "rocky", "almalinux", "centos"}:
        name, version = "el", version.split(".")[0]
    return f"{name}-{version}", os.uname().machine


def reasons(text: str) -> str:
    """Return the lines of a failed update with the reason."""
    lines = [line.strip() for line in text.splitlines()]
    errors = [line for line in lines if re.match(r"(E:|W:|Err:|Error|Errors|Failed)", line)]
    return "; ".join(dict.fromkeys(errors or lines[-3:]))


def uses_apt() -> bool:
    """Return whether this node's packages are apt's."""
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
    """Return pins: the source's packages from it, others only where nothing else has them."""
    site = urllib.parse.urlsplit(repository["url"]).hostname or ""
    pin = f'Pin: origin "{site}"\n'
    own = " ".join(repository["packages"])
    first = f"Package: {own}\n{pin}Pin-Priority: {PREFERRED}\n\n" if own else ""
    return f"{HEAD}{first}Package: *\n{pin}Pin-Priority: {OTHERWISE}\n"


OFF = "# gcluster: "
"""Prefix of each line of another file's source that ours replaces."""
_REST = "X-Gcluster: the rest of the source above"
_LINE = re.compile(r"\s*deb(-src)?\s+(\[[^\]]*\]\s+)?(?P<url>\S+)\s+(?P<suite>\S+)")
Sources = Collection[tuple[str, str]]
"""Of the repositories that are ours: URL in apt's spelling, and suite."""


def without_ours(text: str, suffix: str, ours: Sources) -> str:
    """Return another's file of sources with every entry of ours turned off, and no other one.

    apt stops altogether where two entries of one repository trust different keys ("Conflicting
    values set for option Signed-By"): an image that brings NVIDIA's repository has its key
    elsewhere. An entry that was turned off and is no longer ours comes back.

    Args:
        text: of the file.
        suffix: of its name; ".sources" holds paragraphs (deb822), all others lines.
        ours: what this node is given by us.
    """
    if suffix == ".sources":
        paragraphs = re.split(r"\n[ \t]*\n", _whole(text))
        return "\n\n".join(_paragraph_without(paragraph, ours) for paragraph in paragraphs)
    lines = (line.removeprefix(OFF) for line in text.splitlines(keepends=True))
    return "".join(f"{OFF}{line}" if _is_line_of(line, ours) else line for line in lines)


def _whole(text: str) -> str:
    """Return paragraphs as they were before any was turned off."""
    kept = re.sub(rf"(?m)^\n*{re.escape(_REST)}\n(.+\n?)*", "", text)
    return re.sub(rf"(?m)^{re.escape(OFF)}", "", kept)


def _is_line_of(line: str, ours: Sources) -> bool:
    found = _LINE.match(line)
    return found is not None and (apt_url(found["url"]), found["suite"]) in ours


def _paragraph_without(paragraph: str, ours: Sources) -> str:
    """Return a paragraph turned off, and below it the URLs and suites that are not ours."""
    fields = _fields(paragraph)
    urls, suites = fields.get("uris", []), fields.get("suites", [])
    own = [url for url in urls if any((apt_url(url), suite) in ours for suite in suites)]
    if not own or fields.get("enabled") == ["no"]:
        return paragraph
    off = "\n".join(f"{OFF}{line}" for line in paragraph.splitlines())
    off += "\n" if paragraph.endswith("\n") else ""
    others = [url for url in urls if url not in own]
    suites_left = [s for s in suites if not any((apt_url(url), s) in ours for url in own)]
    rests = [_rest(paragraph, others, suites), _rest(paragraph, own, suites_left)]
    return "\n\n".join([off.rstrip("\n"), *filter(None, rests)]) + "\n" * off.endswith("\n")


def _rest(paragraph: str, urls: list[str], suites: list[str]) -> str:
    """Return a paragraph for other URLs and suites; "" where none is left."""
    if not urls or not suites:
        return ""
    given = {"uris": f"URIs: {' '.join(urls)}", "suites": f"Suites: {' '.join(suites)}"}
    kept = re.sub(r"(?im)^(uris|suites):.*(\n[ \t].*)*\n?", "", paragraph).strip("\n")
    return "\n".join((_REST, *given.values(), kept))


def entries(text: str) -> set[tuple[str, str]]:
    """Return URL and suite of each entry of a file with paragraphs."""
    found = [_fields(paragraph) for paragraph in re.split(r"\n[ \t]*\n", text)]
    return {
        (apt_url(url), suite)
        for fields in found
        for url in fields.get("uris", [])
        for suite in fields.get("suites", [])
    }


def _fields(paragraph: str) -> dict[str, list[str]]:
    """Return the value of each field of a paragraph, by its name in lower case."""
    text = re.sub(r"(?m)^#.*\n?", "", paragraph)
    found = re.findall(r"(?m)^([^\s:]+):((?:.*)(?:\n[ \t].*)*)", text)
    return {name.lower(): words.split() for name, words in found}


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
    """Return path -> text of what a repository needs in addition to its key."""
    name, key = repository["name"], key_path(repository["name"])
    if uses_apt():
        return {
            sources / f"{OURS}{name}.sources": apt_source(repository, architecture, key),
            APT_PREFERENCES / f"{OURS}{name}": apt_preferences(repository),
        }
    return {DNF_REPOSITORIES / f"{OURS}{name}.repo": dnf_repository(repository, key)}


def stale_files(kept: set[str], sources: Path) -> Iterator[Path]:
    """Return our files of repositories that are no longer needed, or moved."""
    other = APT_SOURCES if sources == APT_ONLY_SOURCES else APT_ONLY_SOURCES
    if uses_apt():
        yield from sorted(other.glob(f"{OURS}*.sources"))
    apt = {sources: ".sources", APT_KEYS: ".gpg", APT_PREFERENCES: ""}
    folders = apt if uses_apt() else {DNF_REPOSITORIES: ".repo"}
    for folder, suffix in folders.items():
        for path in sorted(folder.glob(f"{OURS}*{suffix}")):
            name = path.name.removeprefix(OURS).removesuffix(suffix)
            # Roles store pins of versions next to those of repositories.
            ours = suffix or "Pin: origin" in path.read_text()
            if name not in kept and ours:
                yield path


def replace(path: Path, content: bytes) -> None:
    """Put a file in place at once, readable by all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_bytes(content)
    fresh.chmod(0o644)
    fresh.replace(path)
