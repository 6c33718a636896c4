"""The module by which roles write their files in one task: what it changes, and what it leaves."""

from __future__ import annotations

import base64
import errno
import os
import pwd
import stat
from pathlib import Path
from typing import Any

import pytest
import running

pytestmark = pytest.mark.usefixtures("own_files")
BLOCK = "# BEGIN gcluster lab\n192.0.2.1 head\n# END gcluster lab\n"


def managed(*, check: bool = False, **arguments: Any) -> list[str]:
    """Run the module; return the paths that it names."""
    answer = running.run_module("managed_files", arguments, check=check)
    paths: list[str] = answer["changed_paths"]
    assert answer["changed"] == bool(paths)
    return paths


def placed(files: dict[Path, str], *, check: bool = False) -> list[str]:
    return managed(files={str(path): text for path, text in files.items()}, check=check)


def blocked(path: Path, text: str, *, check: bool = False) -> list[str]:
    block = {"path": str(path), "marker": "gcluster lab", "text": text}
    return managed(blocks=[block], check=check)


def removed(*paths: Path, check: bool = False) -> list[str]:
    return managed(absent=[str(path) for path in paths], check=check)


def test_what_is_no_longer_requested_goes_and_is_named_once(tmp_path: Path) -> None:
    there, dangling = tmp_path / "there", tmp_path / "dangling"
    there.write_text("of another choice\n")
    dangling.symlink_to(tmp_path / "nowhere")
    wanted = [there, tmp_path / "never", dangling]
    assert removed(*wanted, check=True) == [str(there), str(dangling)]
    assert there.exists()
    assert removed(*wanted) == [str(there), str(dangling)]
    assert removed(*wanted) == []
    assert not list(tmp_path.iterdir())


def test_only_what_differs_is_written_and_named(tmp_path: Path) -> None:
    files = {tmp_path / "below/a": "one\n", tmp_path / "b": "two\n"}
    assert placed(files) == [str(path) for path in files]
    assert placed(files) == []
    (tmp_path / "b").write_text("someone else's\n")
    assert placed(files) == [str(tmp_path / "b")]
    assert {path: path.read_text() for path in files} == files
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "b", "below"]


def test_check_mode_names_what_would_be_written_and_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a"
    assert placed({path: "one\n"}, check=True) == [str(path)]
    assert blocked(path, "one", check=True) == [str(path)]
    assert not path.exists()


def test_only_a_program_may_be_executed_and_another_mode_is_a_difference(tmp_path: Path) -> None:
    files = {tmp_path / "program": "#!/bin/sh\n", tmp_path / "settings": "a = b\n"}
    placed(files)
    assert [stat.S_IMODE(path.stat().st_mode) for path in files] == [0o755, 0o644]
    (tmp_path / "settings").chmod(0o666)
    assert placed(files) == [str(tmp_path / "settings")]


def test_a_link_is_replaced_and_what_it_leads_to_left_alone(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("theirs\n")
    (tmp_path / "a").symlink_to(tmp_path / "other")
    placed({tmp_path / "a": "ours\n"})
    assert not (tmp_path / "a").is_symlink()
    assert (tmp_path / "other").read_text() == "theirs\n"


def test_a_secret_is_written_as_it_is_for_one_user_alone_and_never_printed(tmp_path: Path) -> None:
    key, content = tmp_path / "munge.key", bytes(range(256))
    (tmp_path / ".munge.key.new").write_bytes(b"of a run that was killed")
    encoded = base64.b64encode(content).decode()
    user = pwd.getpwuid(os.getuid()).pw_name
    secret = {"path": str(key), "content": encoded, "owner": user}

    assert managed(secrets=[secret], check=True) == [str(key)]
    assert not key.exists()
    answer = running.run_module("managed_files", {"secrets": [secret]}, diff=True)
    assert answer["changed_paths"] == [str(key)]
    assert encoded not in str(answer)
    assert key.read_bytes() == content
    assert stat.S_IMODE(key.stat().st_mode) == 0o400
    assert list(tmp_path.iterdir()) == [key]
    assert managed(secrets=[secret]) == []
    key.chmod(0o440)
    assert managed(secrets=[secret]) == [str(key)]


@pytest.mark.parametrize("before", ["", "127.0.0.1 localhost\n", "127.0.0.1 localhost"])
def test_a_block_comes_at_the_end_once(tmp_path: Path, before: str) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text(before)
    assert blocked(hosts, "192.0.2.1 head\n") == [str(hosts)]
    assert blocked(hosts, "192.0.2.1 head\n") == []
    assert hosts.read_text() == (before.rstrip("\n") + "\n" + BLOCK).lstrip("\n")


def test_a_block_that_is_there_is_changed_in_its_place(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text(f"127.0.0.1 localhost\n{BLOCK}198.51.100.7 printer\n")
    assert blocked(hosts, "192.0.2.2 head\n192.0.2.3 door\n") == [str(hosts)]
    between = "# BEGIN gcluster lab\n192.0.2.2 head\n192.0.2.3 door\n# END gcluster lab\n"
    assert hosts.read_text() == f"127.0.0.1 localhost\n{between}198.51.100.7 printer\n"


def test_a_block_whose_end_is_gone_takes_nothing_that_follows(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("# BEGIN gcluster lab\n198.51.100.7 printer\n")
    blocked(hosts, "192.0.2.1 head\n")
    assert "198.51.100.7 printer" in hosts.read_text()
    assert blocked(hosts, "192.0.2.1 head\n") == []


def test_a_mounted_file_is_written_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container runtime mounts /etc/hosts; only root could mount one here."""
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 localhost\n")
    node = hosts.stat().st_ino

    def busy(*_: object) -> None:
        raise OSError(errno.EBUSY, "mounted")

    monkeypatch.setattr(Path, "replace", busy)
    assert blocked(hosts, "192.0.2.1 head\n") == [str(hosts)]
    assert hosts.read_text() == f"127.0.0.1 localhost\n{BLOCK}"
    assert (hosts.stat().st_ino, list(tmp_path.iterdir())) == (node, [hosts])


def test_a_diff_shows_the_text_before_and_after(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("one\n")
    answer = running.run_module("managed_files", {"files": {str(path): "two\n"}}, diff=True)
    assert [(each["before"], each["after"]) for each in answer["diff"]] == [("one\n", "two\n")]
