#!/usr/bin/python
"""Fail unless the package mirror sends the bytes of its folder, starts with the machine, and takes nothing."""

from __future__ import annotations

DOCUMENTATION = r"""
module: package_mirror_check
short_description: Check that the package mirror serves its directory read-only
description:
  - Fails unless the package mirror sends the bytes that lie in its folder, starts with the machine, and takes no files.
author: The gcluster authors
options:
  port:
    description: The package mirror's port.
    type: int
    required: true
  addresses:
    description: Addresses that it listens on.
    type: list
    elements: str
    required: true
attributes:
  check_mode:
    description: Only looks.
    support: full
"""

EXAMPLES = r"""
- name: Check the served files
  gcluster.cluster.package_mirror_check:
    port: 8080
    addresses: [0.0.0.0]
"""

RETURN = r"""
differences:
  description: What is wrong, one line each.
  returned: failure
  type: list
  elements: str
  sample: ["nothing answers at http://127.0.0.1:8080: refused"]
"""

import http.client
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.node import run
from ..module_utils.state import exit_with_differences

ROOT = Path("/srv/gcluster/package-mirror")
UNIT = "gcluster-package-mirror.service"
SAMPLE = 1 << 20
ANY = {"0.0.0.0": "127.0.0.1", "[::]": "::1"}  # noqa: S104  # queried, not served


def request(address: str, port: int, method: str, path: str) -> tuple[int, bytes]:
    """Return the status and the beginning of the answer."""
    connection = http.client.HTTPConnection(address, port, timeout=10)
    connection.request(method, path)
    answer = connection.getresponse()
    return answer.status, answer.read(SAMPLE)


def wrong_at(address: str, port: int) -> Iterator[str]:
    """Yield what is wrong with the server at an address."""
    try:
        for path in sorted(ROOT.glob("[!.]*")):
            if not path.is_file():
                continue
            with path.open("rb") as file:
                if request(address, port, "GET", f"/{path.name}") != (
                    HTTPStatus.OK,
                    file.read(SAMPLE),
                ):
                    yield f"http://{address}:{port}/{path.name} is not {path}"
        if request(address, port, "PUT", "/README")[0] not in {
            HTTPStatus.FORBIDDEN,
            HTTPStatus.METHOD_NOT_ALLOWED,
        }:
            yield f"http://{address}:{port} takes files"
    except OSError as error:
        yield f"nothing answers at http://{address}:{port}: {error}"


def differences(addresses: list[str], port: int) -> Iterator[str]:
    """Yield everything that is wrong."""
    for address in addresses:
        yield from wrong_at(ANY.get(address, address.strip("[]")), port)
    if not (ROOT / "README").exists():
        yield f"{ROOT}/README is gone"
    for word in ("is-enabled", "is-active"):
        if run("systemctl", word, "--quiet", UNIT)[0]:
            yield f"{UNIT}: systemctl {word} says no"


ARGUMENTS: dict[str, Any] = {
    "port": {"type": "int", "required": True},
    "addresses": {"type": "list", "elements": "str", "required": True},
}


def main() -> None:
    """Fail with everything that is wrong."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    asked_for = module.params
    exit_with_differences(module, lambda: differences(asked_for["addresses"], asked_for["port"]))


if __name__ == "__main__":
    main()
