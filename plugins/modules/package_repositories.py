#!/usr/bin/python
"""Give this node its package repositories, each trusted by the fingerprint of its signing key."""

from __future__ import annotations

DOCUMENTATION = r"""
module: package_repositories
short_description: Configure package repositories with pinned keys
description:
  - Tries each new repository apart, and only what answers with a good signature by the pinned key is put in
    place. A wrong key, a mirror that is away or a bad signature leave the package manager as it was.
  - Entries for the same repository in other files of apt are turned off, whatever key they trust, since two entries with
    different keys stop apt; they come back when the repository is no longer requested.
author: The gcluster authors
options:
  repositories:
    description: Repositories of all distributions; the node takes those made for it.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Artefact source; its files carry this name.
        type: str
        required: true
      distribution:
        description: Distribution it is made for, such as debian-13 or el-9.
        type: str
        required: true
      architecture:
        description: Either x86_64 or aarch64; empty for all.
        type: str
        default: ""
      url:
        description: Root of the repository.
        type: str
        required: true
      suite:
        description: The suite (apt); ending in a slash for a flat repository.
        type: str
        default: /
      components:
        description: Components (apt); none for a flat repository.
        type: list
        elements: str
        default: []
      key_url:
        description: Where the signing key is.
        type: str
        default: ""
      key:
        description: The signing key itself, as text; nothing is then fetched.
        type: str
        default: ""
      key_fingerprint:
        description: Fingerprint of the one key that is trusted; a repository without is refused.
        type: str
        required: true
      signed_index:
        description: Whether the repository's metadata is signed too (dnf).
        type: bool
        default: true
      required:
        description: Whether a node that no repository of this name is for fails; else it goes without.
        type: bool
        default: true
      packages:
        description: Names that are taken from here first (apt); others only where no other source has them.
        type: list
        elements: str
        default: []
  only:
    description: Use these and no others, not even the distribution's own (apt).
    type: bool
    default: false
  state:
    description: V(present) makes it so; V(verified) changes nothing and fails where the node differs.
    type: str
    choices: [present, verified]
    default: present
attributes:
  check_mode:
    description: Says what would change and changes nothing.
    support: full
"""

EXAMPLES = r"""
- name: Give the node the vendor's repository
  gcluster.cluster.package_repositories:
    repositories:
      - name: vendor
        distribution: debian-13
        url: https://packages.example.com/debian13/
        key_url: https://packages.example.com/key.asc
        key_fingerprint: 0123456789ABCDEF0123456789ABCDEF01234567
"""

RETURN = r"""
changes:
  description: What was changed, one line each.
  returned: always
  type: list
  elements: str
  sample: [changed /etc/apt/sources.list.d/gcluster-vendor.sources]
"""

import re
import tempfile
import urllib.error
import urllib.parse
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.urls import open_url

from ..module_utils.node import run
from ..module_utils.openpgp_keys import certificates, primary_fingerprints
from ..module_utils.repositories import (
    APT_KEYS,
    APT_LIST,
    APT_ONLY_SOURCES,
    APT_SOURCES,
    DNF_KEYS,
    HEAD,
    OURS,
    Repository,
    apt_url,
    entries,
    key_path,
    reasons,
    replace,
    repository_files,
    stale_files,
    this_distribution,
    uses_apt,
    without_ours,
)
from ..module_utils.state import STATE

Files = dict[Path, bytes]
APT_ONLY = Path("/etc/apt/apt.conf.d/95gcluster-only")
FETCH_TIMEOUT_S, TIMEOUT_S = 60, 3600


class Refused(Exception):  # noqa: N818  # named for what happened
    """The repository can't be trusted or reached."""


def fetched_key(repository: Repository, folder: Path) -> bytes:
    """Return a keyring with the pinned key and no other; Refused when it isn't what is offered."""
    name, wanted = repository["name"], repository["key_fingerprint"]
    if not wanted:
        raise Refused(
            f"{name}: no fingerprint is known of its signing key: read it from the vendor and write"
            f" software.sources.{name}.key_fingerprint"
        )
    offered = folder / f"{name}.offered"
    try:
        if repository["key"]:
            offered.write_text(repository["key"])
        else:
            url = repository["key_url"]  # a bundle's is a file:
            with open_url(url, timeout=FETCH_TIMEOUT_S) as answer:
                offered.write_bytes(answer.read())
    except (urllib.error.URLError, OSError, ValueError) as error:
        raise Refused(
            f"{name}: its key can't be read from {repository['key_url']}: {error}"
        ) from error
    found = primary_fingerprints(offered)
    if wanted not in found:
        raise Refused(
            f"{name}: the key at {repository['key_url'] or 'software.sources'} is"
            f" {', '.join(found) or 'no key'}, not {wanted}: it was not trusted"
        )
    if uses_apt():
        return certificates(offered.read_bytes())[wanted]
    home = folder / f"{name}.home"
    home.mkdir(mode=0o700)
    environment = {"GNUPGHOME": str(home)}
    keyring = folder / f"{OURS}{name}.gpg"
    for arguments in (
        ["--import", str(offered)],
        ["--armor", "--output", str(keyring), "--export", wanted],
    ):
        code, text = query("gpg", "--batch", "--quiet", *arguments, environment=environment)
        if code:
            raise Refused(f"{name}: gpg can't read its key: {text.strip()}")
    return keyring.read_bytes()


def try_apt(name: str, text: str, keyring: bytes, folder: Path) -> None:
    """Load the index of one new source apart from the others; Refused when that fails."""
    parts = folder / f"{name}.parts"
    parts.mkdir(mode=0o755)
    trusted = parts / "key.gpg"
    trusted.write_bytes(keyring)
    trusted.chmod(0o644)
    text = re.sub(r"(?m)^Signed-By: .*", f"Signed-By: {trusted}", text)
    (parts / f"{name}.sources").write_text(text)
    code, output = query(
        "apt-get",
        "update",
        "--error-on=any",
        "--option=Dir::Etc::SourceList=/dev/null",
        f"--option=Dir::Etc::SourceParts={parts}",
        "--option=APT::Get::List-Cleanup=0",
        "--option=Acquire::Retries=2",
        # Otherwise apt's own cache of the other sources would have to be rebuilt.
        "--option=Dir::Cache::pkgcache=",
        "--option=Dir::Cache::srcpkgcache=",
    )
    if code:
        raise Refused(f"{name}: apt refuses it, so it was not added: {reasons(output)}")


def try_dnf(name: str, text: str, keyring: bytes, folder: Path) -> None:
    """Load the metadata of one new repository apart from the others; Refused when that fails."""
    parts = folder / f"{name}.parts"
    parts.mkdir(mode=0o755)
    key = parts / "key.asc"
    key.write_bytes(keyring)
    text = re.sub(r"(?m)^gpgkey=.*", f"gpgkey=file://{key}", text)
    (parts / f"{name}.repo").write_text(text)
    code, output = query("dnf", "--quiet", "--assumeyes", f"--setopt=reposdir={parts}", "makecache")
    if code:
        raise Refused(f"{name}: dnf refuses it, so it was not added: {reasons(output)}")


def changes_of(repository: Repository, architecture: str, sources: Path, folder: Path) -> Files:
    """Return path -> content of what must change for a repository, after it was tried."""
    key = key_path(repository["name"])
    files = {p: t.encode() for p, t in repository_files(repository, architecture, sources).items()}
    trusted = primary_fingerprints(key) if key.exists() else []
    changed = {p: c for p, c in files.items() if not p.exists() or p.read_bytes() != c}
    if trusted == [repository["key_fingerprint"]]:
        keyring = key.read_bytes()
    else:
        keyring = fetched_key(repository, folder)
        changed[key] = keyring
    if changed:
        text = next(iter(files.values())).decode()
        (try_apt if uses_apt() else try_dnf)(repository["name"], text, keyring, folder)
    return changed


def turn_off_others(accepted: list[Repository], kept: set[str] | None, *, act: bool) -> list[str]:
    """Disable repositories of ours in apt's other files, with other keys; return what changed.

    Ours only accepts the pinned key, so it replaces what an image brought. A repository that was
    refused turns nothing off.

    Args:
        accepted: repositories that are installed now.
        kept: names of sources of ours that stay;
        None: all existing ones.
        act: whether to change anything.
    """
    ours = {(apt_url(each["url"]), each["suite"]) for each in accepted}
    for path in APT_SOURCES.glob(f"{OURS}*.sources"):
        if kept is None or path.name.removeprefix(OURS).removesuffix(".sources") in kept:
            ours |= entries(path.read_text())
    changed = []
    for path in [APT_LIST, *sorted(APT_SOURCES.glob("*"))]:
        if path.name.startswith(OURS) or path.suffix not in {".list", ".sources"}:
            continue
        if not path.is_file():
            continue
        text = path.read_text(errors="surrogateescape")
        left = without_ours(text, path.suffix, ours)
        if left != text:
            changed.append(f"changed {path}: another's entries of a source of gcluster")
            if act:
                replace(path, left.encode(errors="surrogateescape"))
    return changed


def use_only_ours(*, act: bool) -> list[str]:
    """Let apt read our sources alone; return what changed."""
    text = f'Dir::Etc::SourceList "/dev/null";\nDir::Etc::SourceParts "{APT_ONLY_SOURCES}";\n'
    content = f"// {HEAD[2:]}{text}".encode()
    if APT_ONLY.exists() and APT_ONLY.read_bytes() == content:
        return []
    if act:
        replace(APT_ONLY, content)
    return [f"changed {APT_ONLY}"]


def use_all_sources(*, act: bool) -> list[str]:
    """Let apt read the node's other sources again; return what changed."""
    if not APT_ONLY.exists():
        return []
    if act:
        APT_ONLY.unlink()
    return [f"removed {APT_ONLY}"]


def install(
    repositories: list[Repository], names: set[str], architecture: str, *, act: bool, only: bool
) -> tuple[list[str], list[str]]:
    """Put every repository in place, or report what would change; all failures are reported."""
    sources = APT_ONLY_SOURCES if only else APT_SOURCES
    refused: list[str] = []
    planned: list[tuple[Repository, Files]] = []
    with tempfile.TemporaryDirectory(prefix="package-sources.") as scratch:
        folder = Path(scratch)
        folder.chmod(0o755)
        for repository in repositories:
            try:
                planned.append((repository, changes_of(repository, architecture, sources, folder)))
            except Refused as error:
                refused.append(str(error))
    kept = names if not refused else None
    accepted = [repository for repository, _ in planned]
    changed = turn_off_others(accepted, kept, act=act) if uses_apt() and not only else []
    for repository, changes in planned:
        # The key first: a source is never there without it.
        for path in sorted(changes, key=lambda path: path.parent not in {APT_KEYS, DNF_KEYS}):
            changed.append(f"changed {path}")
            if act:
                replace(path, changes[path])
        if act and not uses_apt() and key_path(repository["name"]) in changes:
            query("rpm", "--import", str(key_path(repository["name"])))
    if not refused and uses_apt():
        changed += use_only_ours(act=act) if only else use_all_sources(act=act)
        # An image may have been baked without them.
        unread = [each["url"] for each in repositories if not changed and not has_index(each)]
        changed += [f"{url}: no index yet" for url in unread]
    for path in [] if refused else list(stale_files(names, sources)):
        changed.append(f"removed {path}")
        if act:
            path.unlink()
    return changed, refused


def verify(repositories: list[Repository], *, only: bool) -> list[str]:
    """Return the repositories' errors from the package manager's current view."""
    wrong: list[str] = []
    ours: list[str] = []
    used = apt_indexes() if uses_apt() else []
    text = "" if uses_apt() else query("dnf", "--quiet", "repolist", "--enabled")[1]
    for repository in repositories:
        name, key = repository["name"], key_path(repository["name"])
        if not key.exists() or primary_fingerprints(key) != [repository["key_fingerprint"]]:
            wrong.append(f"{name}: {key} doesn't hold just the pinned key")
        url = apt_url(repository["url"])
        if uses_apt():
            ours.append(url)
            if [url, str(key)] not in [line[:2] for line in used]:
                wrong.append(f"{name}: apt doesn't use {url} with its key")
            elif not has_index(repository):
                wrong.append(f"{name}: apt has no index of {url}")
        elif f"{OURS}{name} " not in text:
            wrong.append(f"{name}: dnf doesn't use {url}")
    everyone = apt_indexes("--no-release-info") if only and uses_apt() else []
    others = sorted({line[0] for line in everyone} - set(ours))
    return [*wrong, *(f"{url}: apt uses it too" for url in others)]


def apt_indexes(*options: str) -> list[list[str]]:
    """Return where each package index that apt uses is from, the key it trusts and its file.

    apt leaves out sources that it has not read yet; with --no-release-info, only the keys are
    shown.
    """
    form = "$(REPO_URI) $(SIGNED_BY) $(FILENAME)"
    _, text = query("apt-get", "indextargets", *options, "--format", form, "Created-By: Packages")
    return [line.split() for line in text.splitlines()]


def has_index(repository: Repository) -> bool:
    """Return whether apt has read a package index of a source, which may be compressed."""
    url = apt_url(repository["url"])
    files = [Path(line[2]) for line in apt_indexes() if line[0] == url]
    return any(list(file.parent.glob(f"{file.name}*")) for file in files)


def query(*argv: str, environment: dict[str, str] | None = None) -> tuple[int, str]:
    """Run a program in a plain locale; return its status and what it printed."""
    settings = {"LC_ALL": "C.UTF-8", **(environment or {})}
    return run(*argv, timeout_s=TIMEOUT_S, environment=settings)


ARGUMENTS: dict[str, Any] = {
    "repositories": {
        "type": "list",
        "elements": "dict",
        "required": True,
        "options": {
            "name": {"type": "str", "required": True},
            "distribution": {"type": "str", "required": True},
            "architecture": {"type": "str", "default": ""},
            "url": {"type": "str", "required": True},
            "suite": {"type": "str", "default": "/"},
            "components": {"type": "list", "elements": "str", "default": []},
            "key_url": {"type": "str", "default": "", "no_log": False},
            "key": {"type": "str", "default": "", "no_log": False},  # a public one
            "key_fingerprint": {"type": "str", "required": True, "no_log": False},
            "signed_index": {"type": "bool", "default": True},
            "required": {"type": "bool", "default": True},
            "packages": {"type": "list", "elements": "str", "default": []},
        },
    },
    "only": {"type": "bool", "default": False},
    "state": STATE,
}


def main() -> None:
    """Put the repositories in place, or fail with what is wrong."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    requested, only = module.params["repositories"], module.params["only"]
    distribution, architecture = this_distribution()
    here = [
        repository
        for repository in requested
        if repository["distribution"] == distribution
        and repository["architecture"] in {"", architecture}
    ]
    names = {repository["name"] for repository in requested}
    required = {repository["name"] for repository in requested if repository["required"]}
    refused = [
        f"{name}: it has no repository for {distribution} on {architecture}"
        for name in sorted(required - {repository["name"] for repository in here})
    ]
    changed: list[str] = []
    if only and not uses_apt():
        module.fail_json(msg="no bundle can be the one source of dnf's packages yet")
    if module.params["state"] == "verified":
        refused += verify(here, only=only)
    else:
        act = not module.check_mode
        changed, failed = install(here, names, architecture, act=act, only=only)
        refused += failed
    if refused:
        module.fail_json(msg="\n".join(refused), changed=bool(changed), changes=changed)
    module.exit_json(changed=bool(changed), changes=changed)


if __name__ == "__main__":
    main()
