#!/usr/bin/python
"""Take the packages of Slurm that the cluster has built: checked, onto the node's own disk."""

from __future__ import annotations

DOCUMENTATION = r"""
module: slurm_packages
short_description: Download the packages of Slurm that the cluster has built
description:
  - Waits until the mirror has packages for the distribution and architecture of this node, and takes them.
  - The list of their checksums must carry a code (HMAC) made with the cluster's MUNGE key, and each file its checksum.
  - A build that failed is reported with its own output.
author: The gcluster authors
options:
  mirror:
    description: URL of the folder that has one folder for each distribution and architecture.
    type: str
    required: true
  path:
    description: Folder to keep the packages in; files that the mirror doesn't list are removed from it.
    type: path
    required: true
  munge_key:
    description: The cluster's MUNGE key.
    type: path
    default: /etc/munge/munge.key
  wait_seconds:
    description: Seconds to wait for packages that are still being built.
    type: int
    default: 3600
attributes:
  check_mode:
    description: Nothing is written or waited for.
    support: full
"""

EXAMPLES = r"""
- name: Take the packages that the cluster has built
  gcluster.cluster.slurm_packages:
    mirror: http://10.0.0.4:8480/slurm/25.11.8-34ace13f8101-1
    path: /var/lib/gcluster/slurm-packages
"""

RETURN = r"""
fetched:
  description: Files that were not there, or were others.
  returned: always
  type: list
  elements: str
  sample: [slurm-smd_25.11.8-1_amd64.deb]
"""

import hashlib
import hmac
import time
import urllib.error
from http import HTTPStatus
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.urls import open_url

from ..module_utils.download import fetch
from ..module_utils.repositories import this_distribution
from ..module_utils.state import Failed

SUMS, CODE, FAILED = "SHA256SUMS", "SHA256SUMS.hmac", "FAILED"
POLL_INTERVAL_S, TIMEOUT_S = 5, 60


def text_of(url: str) -> str | None:
    """Return a file of the mirror; None: it isn't there."""
    try:
        with open_url(url, timeout=TIMEOUT_S) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError as error:
        if error.code == HTTPStatus.NOT_FOUND:
            return None
        raise Failed(f"{url} can't be read: {error}") from error
    except urllib.error.URLError as error:
        if isinstance(error.reason, FileNotFoundError) or "No such file" in str(error.reason):
            return None
        raise Failed(f"{url} can't be read: {error.reason}") from error
    except (OSError, ValueError) as error:
        raise Failed(f"{url} can't be read: {error}") from error


def listed(folder: str, wait_s: int) -> tuple[str, str]:
    """Return the list of checksums with its code, once both are there."""
    end = time.monotonic() + wait_s
    while True:
        sums, code = text_of(f"{folder}/{SUMS}"), text_of(f"{folder}/{CODE}")
        if sums is not None and code is not None:
            return sums, code
        failed = text_of(f"{folder}/{FAILED}")
        if failed is not None:
            raise Failed(failed.strip())
        if time.monotonic() >= end:
            raise Failed(
                f"there are no packages at {folder}: gcluster up builds them on a node of this"
                " distribution and architecture"
            )
        time.sleep(POLL_INTERVAL_S)


def refuse_unvouched(sums: str, code: str, what: str, key: bytes) -> None:
    """Raise Failed unless the list is this cluster's, for this build and platform."""
    right = hmac.new(key, f"{what}\n{sums}".encode(), hashlib.sha256).hexdigest()
    if not hmac.compare_digest(right, code.strip()):
        raise Failed(
            f"the list of packages of {what} does not carry this cluster's code: the MUNGE key was"
            " changed since, or it is of another cluster; gcluster up writes it again"
        )


def checksums(sums: str) -> dict[str, str]:
    """Return file -> SHA-256 in hex of a list as sha256sum prints it."""
    rows = (line.split(None, 1) for line in sums.splitlines())
    found = {name.strip().lstrip("*"): digest for digest, name in rows}
    if not found or any(name.startswith("/") or ".." in name.split("/") for name in found):
        raise Failed("the list of packages names none, or files elsewhere")
    return found


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file in hex; "" where there is none."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def take(folder: str, path: Path, wanted: dict[str, str], *, act: bool) -> list[str]:
    """Bring what is missing into the folder, remove the rest; return what was brought."""
    missing = [name for name, digest in wanted.items() if digest_of(path / name) != digest]
    for name in missing if act else ():
        target = path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f".{target.name}")
        if fetch(f"{folder}/{name}", part, "") != f"sha256:{wanted[name]}":
            part.unlink()
            raise Failed(f"{folder}/{name} is not what the list of packages says")
        part.chmod(0o644)
        part.replace(target)
    for old in path.rglob("*") if act and path.is_dir() else ():
        if old.is_file() and str(old.relative_to(path)) not in {*wanted, SUMS}:
            old.unlink()
    return missing


ARGUMENTS: dict[str, Any] = {
    "mirror": {"type": "str", "required": True},
    "path": {"type": "path", "required": True},
    "munge_key": {"type": "path", "default": "/etc/munge/munge.key"},
    "wait_seconds": {"type": "int", "default": 3600},
}


def main() -> None:
    """Take the packages."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    asked_for, act = module.params, not module.check_mode
    path = Path(asked_for["path"])
    platform = "-".join(this_distribution())
    mirror = asked_for["mirror"].rstrip("/")
    folder = f"{mirror}/{platform}"
    try:
        sums, code = listed(folder, asked_for["wait_seconds"] if act else 0)
        what = f"{mirror.rpartition('/')[2]}/{platform}"
        refuse_unvouched(sums, code, what, Path(asked_for["munge_key"]).read_bytes())
        fetched = take(folder, path, checksums(sums), act=act)
        if act and (fetched or digest_of(path / SUMS) != hashlib.sha256(sums.encode()).hexdigest()):
            path.mkdir(parents=True, exist_ok=True)
            (path / SUMS).write_text(sums)
    except (Failed, OSError) as error:
        module.fail_json(msg=str(error), fetched=[])
    module.exit_json(changed=bool(fetched), fetched=fetched)


if __name__ == "__main__":
    main()
