#!/usr/bin/python
"""Write all files of a role in one task; `copy` takes seconds for a folder of twenty."""

from __future__ import annotations

DOCUMENTATION = r"""
module: managed_files
short_description: Write many files, and remove others, in one task
description:
  - Replaces each file that differs as a whole, so that a reader sees the old one or the new one.
  - Files belong to root.
author: The gcluster authors
options:
  files:
    description:
      - Path to text. A text that starts with C(#!) may be executed (0755), any other is 0644.
    type: dict
    default: {}
  blocks:
    description: Lines in files that have other owners too.
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: The file; it is made where it isn't there.
        type: path
        required: true
      marker:
        description: The lines stand between C(# BEGIN marker) and C(# END marker), at first at the end.
        type: str
        required: true
      text:
        description: The lines.
        type: str
        required: true
  secrets:
    description: Files that one user alone may read (0400).
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: The file.
        type: path
        required: true
      content:
        description: The bytes, as base64.
        type: str
        required: true
      owner:
        description: Name of the user that may read it.
        type: str
        required: true
  absent:
    description: Files to remove.
    type: list
    elements: path
    default: []
attributes:
  check_mode:
    description: Says what would change and changes nothing.
    support: full
  diff_mode:
    description: Shows what changes, but for secrets.
    support: full
"""

EXAMPLES = r"""
- name: Write the configuration of a service
  gcluster.cluster.managed_files:
    files:
      /etc/example.conf: "a = b\n"
    absent: [/etc/example.conf.d/old.conf]
"""

RETURN = r"""
changed_paths:
  description: The files that were written or removed.
  returned: always
  type: list
  elements: str
  sample: [/etc/example.conf]
"""

import base64
import os
import pwd
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.files import is_current, replace, text_of, write_text

ARGUMENTS: dict[str, Any] = {
    "files": {"type": "dict", "default": {}},
    "blocks": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "path": {"type": "path", "required": True},
            "marker": {"type": "str", "required": True},
            "text": {"type": "str", "required": True},
        },
    },
    "secrets": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "no_log": False,  # the contents are secret
        "options": {
            "path": {"type": "path", "required": True},
            "content": {"type": "str", "required": True, "no_log": True},
            "owner": {"type": "str", "required": True},
        },
    },
    "absent": {"type": "list", "elements": "path", "default": []},
}


def with_block(text: str, marker: str, block: str) -> str:
    """Return a file's text with the block in it, in its place or at the end."""
    lines = text.splitlines()
    begin, end = f"# BEGIN {marker}", f"# END {marker}"
    first = lines.index(begin) if begin in lines else len(lines)
    last = lines.index(end, first) + 1 if end in lines[first:] else first
    lines[first:last] = [begin, *block.splitlines(), end]
    return "\n".join(lines) + "\n"


def written(files: dict[str, str], *, act: bool) -> list[dict[str, str]]:
    """Write the files that differ; return the diff of each."""
    return [
        diff
        for path, text in files.items()
        if (diff := write_text(path, text, act=act, mode=0o755 if text.startswith("#!") else 0o644))
    ]


def secret_written(secret: dict[str, str], *, act: bool) -> bool:
    """Write a secret that differs; return whether it did."""
    path, content = Path(secret["path"]), base64.b64decode(secret["content"])
    user = pwd.getpwnam(secret["owner"])
    owner = (user.pw_uid, user.pw_gid)
    if is_current(path, content, 0o400, owner):
        return False
    if act:
        replace(path, content, 0o400, owner)
    return True


def removed(path: str, *, act: bool) -> dict[str, str] | None:
    """Remove a file or link; return its diff, None where there is none."""
    if not os.path.lexists(path):
        return None
    diff = {"before_header": path, "before": text_of(Path(path)), "after": ""}
    if act:
        Path(path).unlink()
    return diff


def main() -> None:
    """Write and remove what differs."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    wanted, act = module.params, not module.check_mode
    files = {
        block["path"]: with_block(text_of(Path(block["path"])), block["marker"], block["text"])
        for block in wanted["blocks"]
    }
    diffs = written({**files, **wanted["files"]}, act=act)
    secrets = [each["path"] for each in wanted["secrets"] if secret_written(each, act=act)]
    diffs += [diff for path in wanted["absent"] if (diff := removed(path, act=act))]
    paths = [diff["before_header"] for diff in diffs] + secrets
    module.exit_json(changed=bool(paths), changed_paths=paths, diff=diffs if module._diff else [])


if __name__ == "__main__":
    main()
