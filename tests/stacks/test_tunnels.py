"""A tunnel's program is checked before anything is made: without it there is no access."""

from __future__ import annotations

from pathlib import Path

import pytest

from gcluster.stacks.io.ssh import missing_programs


def test_each_command_that_a_tunnel_takes_and_that_is_not_here_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = missing_programs("east", "ssm")
    assert [answer.summary.rpartition("command ")[2] for answer in found] == [
        "aws, which is not here",
        "session-manager-plugin, which is not here",
    ]
    assert all(answer.path == ("sites", "east", "ssh", "tunnel") for answer in found)
    (tmp_path / "aws").write_text("#!/bin/sh\n")
    (tmp_path / "aws").chmod(0o755)
    assert missing_programs("east", "instance-connect") == ()
    assert missing_programs("east", None) == ()
