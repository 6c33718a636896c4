"""The SSH server's rules of user data and of the base role, as sshd puts them together."""

from __future__ import annotations

from pathlib import PurePath

import yaml

from gcluster.stacks.io.ssh import SSHD_FILE, SSHD_RULES

from .rendering import CASES


def effective(files: dict[str, str]) -> dict[str, str]:
    """Return setting -> value: files in the order of their names, the first value counts."""
    found: dict[str, str] = {}
    for name in sorted(files):
        for line in files[name].splitlines():
            key, _, value = line.partition(" ")
            if key != "#":
                found.setdefault(key.casefold(), value)
    return found


def base_role() -> dict[str, str]:
    """Return the file that the base role's install phase writes, by its name."""
    case = yaml.safe_load((CASES / "base.yaml").read_text(encoding="utf-8"))
    tasks = [task.get("ansible.builtin.template", {}) for task in case["tasks"]["install"]]
    [rules] = [task for task in tasks if task.get("src") == "sshd.conf.j2"]
    return {PurePath(rules["dest"]).name: rules["content"]}


def test_the_base_role_leaves_root_as_closed_as_the_node_was_started() -> None:
    started = {PurePath(SSHD_FILE).name: SSHD_RULES}
    assert effective(started | base_role())["permitrootlogin"] == "no"


def test_the_base_role_ignores_root_where_the_image_alone_decides() -> None:
    image = {"60-cloudimg-settings.conf": "PermitRootLogin no\nPasswordAuthentication yes\n"}
    settings = effective(base_role() | image)
    assert settings["permitrootlogin"] == "no"
    assert settings["passwordauthentication"] == "no"
