"""A file system whose server is gone costs its time once, and never piles up processes."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from node_health import host
from node_health.expected import Mount
from node_health.probe import Probe, start_of


@pytest.fixture
def probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Probe:
    """Return a probe for a mount that never answers: the probing process sleeps instead."""
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/mounts").write_text("server:/x /home nfs4 rw 0 0\n")
    asker = tmp_path / "asker"
    asker.write_text(f"#!/bin/sh\necho $$ >>{tmp_path}/asked\nexec sleep 600\n")
    asker.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(asker))
    monkeypatch.setattr(host, "MOUNT_TIMEOUT_S", 0.5)
    return Probe(tmp_path)


def found(probe: Probe, memory: dict[str, Any]) -> list[str]:
    return [f.code for f in host.check_mounts([Mount("/home", "nfs")], probe, memory)]


def test_a_mount_that_does_not_answer_is_reported_and_the_probe_is_ended(
    probe: Probe, tmp_path: Path
) -> None:
    assert found(probe, {}) == ["mount-hung"]
    assert start_of(int((tmp_path / "asked").read_text())) == ""


def test_no_second_process_queries_while_the_first_one_hangs(probe: Probe, tmp_path: Path) -> None:
    me = {"pid": os.getpid(), "started": start_of(os.getpid()), "since": time.time()}
    memory = {"/home": dict(me)}
    assert found(probe, memory) == ["mount-hung"]
    assert not (tmp_path / "asked").exists()
    assert memory == {"/home": me}


def test_a_process_that_took_over_the_number_of_the_hung_one_is_another(
    probe: Probe, tmp_path: Path
) -> None:
    memory = {"/home": {"pid": os.getpid(), "started": "1", "since": time.time()}}
    found(probe, memory)
    assert (tmp_path / "asked").exists()
    assert memory == {}
