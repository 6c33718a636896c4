#!/usr/bin/python
"""Write the web configuration of a Prometheus server: TLS and one user with a password."""

from __future__ import annotations

DOCUMENTATION = r"""
module: web_config
short_description: Write the web configuration of a Prometheus server
description:
  - The file is that of Prometheus' exporter-toolkit (docs/web-configuration.md there), which holds passwords as bcrypt
    hashes; one that fits the password is kept.
author: The gcluster authors
options:
  path:
    description: The file.
    type: path
    required: true
  owner:
    description: Name of the user that alone may read it.
    type: str
    required: true
  certificate:
    description: File on the node with the server's certificate and its key.
    type: path
    required: true
  user:
    description: Name of the user that may log in.
    type: str
    required: true
  password_file:
    description: File on the node with that user's password.
    type: path
    required: true
  validate:
    description: Command that checks the new file before it is put in place, its path as C(%s).
    type: str
    default: ""
attributes:
  check_mode: {support: full, description: Says whether it would be written.}
"""

EXAMPLES = r"""
- name: Write the web configuration
  gcluster.cluster.web_config:
    path: /etc/gcluster/prometheus/web.yml
    owner: prometheus
    certificate: /etc/gcluster/prometheus/server.pem
    user: gcluster
    password_file: /etc/gcluster/prometheus/password
    validate: promtool check web-config %s
"""

RETURN = r"""
changes:
  description: What was changed, one line each.
  returned: always
  type: list
  elements: str
  sample: [/etc/gcluster/prometheus/web.yml]
"""

import base64
import ctypes
import pwd
import re
import secrets
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.files import is_current, replace, text_of
from ..module_utils.node import run
from ..module_utils.state import Failed, exit_with_progress

ARGUMENTS: dict[str, Any] = {
    "path": {"type": "path", "required": True},
    "owner": {"type": "str", "required": True},
    "certificate": {"type": "path", "required": True},
    "user": {"type": "str", "required": True},
    "password_file": {"type": "path", "required": True, "no_log": False},
    "validate": {"type": "str", "default": ""},
}
LIBRARIES = ("libcrypt.so.1", "libcrypt.so.2")
"""libxcrypt, by the names that distributions give it; Python has no crypt from 3.13 on."""
COST = 10
"""Of bcrypt, as in Prometheus' own guide: 60 ms a login. The password is 192 random bits."""
_SALT_CHARACTERS = 22


def crypt(password: str, setting: str) -> str:
    """Return the hash of a password by the C library (crypt(3)).

    Raises:
        Failed: the C library here has no bcrypt.
    """
    for name in LIBRARIES:
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        library.crypt.restype = ctypes.c_char_p
        found = library.crypt(password.encode(), setting.encode())
        if found and found.startswith(b"$2"):
            return str(found.decode())
    raise Failed(f"no bcrypt in {' or '.join(LIBRARIES)}")


def new_hash(password: str) -> str:
    """Return a bcrypt hash with a salt of its own."""
    # bcrypt's alphabet has "." where base64 has "+"; of the last character only two bits count.
    salt = base64.b64encode(secrets.token_bytes(16)).decode().replace("+", ".")
    return crypt(password, f"$2b${COST}${salt[: _SALT_CHARACTERS - 1]}.")


def text_for(certificate: str, user: str, hashed: str) -> str:
    """Return the file."""
    return (
        "# Written by gcluster. Changes made here are lost; change the spec.\n"
        "tls_server_config:\n"
        f"  cert_file: {certificate}\n"
        f"  key_file: {certificate}\n"
        "  min_version: TLS12\n"
        "basic_auth_users:\n"
        f"  {user}: {hashed}\n"
    )


def wanted_text(given: dict[str, Any], password: str) -> str:
    """Return the file as it should be; a hash that is there and fits stays."""
    found = re.search(r"^  \S+: (\$2[aby]\$\S+)$", text_of(Path(given["path"])), re.MULTILINE)
    kept = found[1] if found and crypt(password, found[1]) == found[1] else new_hash(password)
    return text_for(given["certificate"], given["user"], kept)


def progress(given: dict[str, Any], *, act: bool) -> Iterator[str]:
    """Write the file where it differs."""
    path = Path(given["path"])
    try:
        password = Path(given["password_file"]).read_text(encoding="utf-8").strip()
    except OSError as error:
        if act:
            raise Failed(f"{given['password_file']}: {error.strerror}") from error
        yield str(path)  # it comes with the task before, which check mode has not run
        return
    if not password:
        raise Failed(f"{given['password_file']} is empty")
    content = wanted_text(given, password).encode()
    owner = (0, 0)
    if act or path.exists():
        user = pwd.getpwnam(given["owner"])
        owner = (user.pw_uid, user.pw_gid)
    if is_current(path, content, 0o400, owner):
        return
    if act:
        check(given["validate"], path, content)
        replace(path, content, 0o400, owner)
    yield str(path)


def check(command: str, path: Path, content: bytes) -> None:
    """Have a program check the new file next to the old one.

    Raises:
        Failed: it is refused.
    """
    if not command:
        return
    tried = path.with_name(f"{path.name}.check")
    try:
        replace(tried, content, 0o400)
        code, said = run(*(word.replace("%s", str(tried)) for word in shlex.split(command)))
    finally:
        tried.unlink(missing_ok=True)
    if code:
        raise Failed(f"{path} would not be taken: {said}")


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    exit_with_progress(module, progress(module.params, act=not module.check_mode))


if __name__ == "__main__":
    main()
