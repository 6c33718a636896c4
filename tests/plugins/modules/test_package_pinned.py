"""Packages at exact versions: what is chosen, refused, pinned and held; apt is played."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import running

PROGRAMS = {
    "dpkg-query": """\
for name; do :; done
version=$(cat "$STATE/installed/$name" 2>/dev/null) || exit 1
case "$*" in *showformat*) echo "installed $version" ;; esac
""",
    "apt-cache": 'sed "s!.*! $2 | & | http://x!" "$STATE/offered/$2"\n',
    "apt-get": """\
echo "apt-get $*" >>"$STATE/calls"
[ "$1" = install ] || exit 0
[ ! -e "$STATE/broken" ] || { echo "E: Broken packages"; exit 100; }
for word; do
    case $word in --*) ;; *=[0-9]*) echo "${word#*=}" >"$STATE/installed/${word%%=*}" ;; esac
done
""",
    "apt-mark": """\
if [ "$1" = showhold ]; then cat "$STATE/held"; else shift; printf '%s\\n' "$@" >>"$STATE/held"; fi
""",
    "dpkg": '[ "$2" != "$4" ] && [ "$(printf \'%s\\n\' "$2" "$4" | sort -V | tail -1)" = "$2" ]\n',
}


pytestmark = pytest.mark.usefixtures("own_files")


class Node:
    """A machine of Debian's kind whose package manager is played by small programs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for part in ("installed", "offered"):
            (folder / part).mkdir()
        (folder / "held").touch()
        (folder / "calls").touch()

    def offers(self, name: str, *versions: str) -> None:
        (self.folder / "offered" / name).write_text("".join(f"{v}\n" for v in versions))

    def has(self, name: str, version: str) -> None:
        (self.folder / "installed" / name).write_text(version)

    def installed(self) -> dict[str, str]:
        return {p.name: p.read_text().strip() for p in (self.folder / "installed").iterdir()}

    def held(self) -> list[str]:
        return (self.folder / "held").read_text().split()

    def calls(self) -> str:
        return (self.folder / "calls").read_text()


@pytest.fixture
def node(tmp_path: Path, tools: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    """Return a node with nothing on it."""
    packages = running.module_util("packages")
    monkeypatch.setattr(packages, "APT_PREFERENCES", tmp_path / "preferences.d")
    monkeypatch.setattr(packages, "POLICY", tmp_path / "policy-rc.d")
    monkeypatch.setenv("STATE", str(tmp_path / "state"))
    for name, text in PROGRAMS.items():
        running.put_program(tools / name, f"#!/bin/sh\n{text}")
    (tmp_path / "state").mkdir()
    return Node(tmp_path / "state")


def pinned(*, check: bool = False, **arguments: Any) -> dict[str, Any]:
    return running.run_module("package_pinned", {"name": "gpu", **arguments}, check=check)


def test_the_newest_that_fits_is_installed_pinned_and_held_once(node: Node, tmp_path: Path) -> None:
    node.offers("toolkit", "1.9-1", "1.10-1", "2.0-1")
    first = pinned(packages={"toolkit": "1.*"}, never=["driver*"])
    assert first["changed"]
    assert node.installed() == {"toolkit": "1.10-1"}
    assert node.held() == ["toolkit"]
    pins = (tmp_path / "preferences.d/gcluster-0-version-gpu").read_text()
    assert "Package: toolkit\nPin: version 1.*\nPin-Priority: 999\n" in pins
    assert "Package: driver*\nPin: release *\nPin-Priority: -1\n" in pins
    assert not (tmp_path / "policy-rc.d").exists()

    assert pinned(packages={"toolkit": "1.*"}, never=["driver*"])["changed"] is False


def test_check_mode_reports_what_is_due_and_changes_nothing(node: Node, tmp_path: Path) -> None:
    node.offers("toolkit", "1.9-1")
    planned = pinned(packages={"toolkit": "1.*"}, also=["make"], check=True)
    pins = f"pins in {tmp_path}/preferences.d/gcluster-0-version-gpu"
    assert planned["changes"] == [pins, "toolkit 1.*", "make"]
    assert (node.installed(), node.held(), node.calls()) == ({}, [], "")


def test_what_no_repository_has_is_reported_with_what_there_is(node: Node) -> None:
    node.offers("toolkit", "2.0-1")
    refused = pinned(packages={"toolkit": "1.*", "other": "3"})
    assert refused["failed"]
    assert "no toolkit 1.* in the node's repositories; they have 2.0-1" in refused["msg"]
    assert "no other 3 in the node's repositories; they have none" in refused["msg"]
    assert "apt-get update" in node.calls()
    assert node.installed() == {}


def test_an_older_version_is_installed_only_where_that_is_requested(node: Node) -> None:
    node.has("toolkit", "2.0-1")
    node.offers("toolkit", "1.9-1", "2.0-1")
    refused = pinned(packages={"toolkit": "1.*"}, hint="write cuda")
    assert refused["msg"] == "toolkit 2.0-1 is installed here and 1.9-1 is older: write cuda"
    assert node.installed() == {"toolkit": "2.0-1"}

    pinned(packages={"toolkit": "1.*"}, allow_downgrade=True)
    assert node.installed() == {"toolkit": "1.9-1"}
    assert "--allow-downgrades" in node.calls()


def test_why_apt_gave_up_is_reported_after_a_second_try(node: Node) -> None:
    node.offers("toolkit", "1.9-1")
    (node.folder / "broken").touch()
    assert pinned(packages={"toolkit": "1.*"})["msg"] == "gpu: E: Broken packages"
    assert node.calls().count("apt-get install") == 2


def test_only_what_is_installed_and_not_held_is_held(node: Node) -> None:
    node.has("kernel", "6.1")
    node.has("headers", "6.1")
    wanted = {"name": ["kernel", "headers", "absent"], "installed_only": True}
    (node.folder / "held").write_text("headers\n")
    assert running.run_module("package_hold", wanted, check=True)["held"] == ["kernel"]
    assert node.held() == ["headers"]
    assert running.run_module("package_hold", wanted)["held"] == ["kernel"]
    assert node.held() == ["headers", "kernel"]
    assert running.run_module("package_hold", wanted)["changed"] is False
