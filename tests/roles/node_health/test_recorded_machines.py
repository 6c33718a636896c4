"""A good machine is fit; each fault that was recorded keeps it from jobs, under its own code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import recorded

Look = Callable[..., dict[str, Any]]


def look_without_files(look: Look) -> dict[str, Any]:
    """Look at the machine as it lies there; only /lustre isn't written again."""
    kept = recorded.text

    def without(name: str, case: str | None = None) -> str:
        return kept(name, case).replace("/lustre/there: ''", "/other/there: ''")

    recorded.text = without
    try:
        return look()
    finally:
        recorded.text = kept


def codes(report: dict[str, Any]) -> set[str]:
    return {finding["code"] for finding in report["findings"] if finding["drains"]}


def test_a_good_machine_is_fit_at_the_first_run_and_at_the_next(look: Look) -> None:
    assert look()["reason"] == ""
    again = look()
    assert (again["verdict"], again["findings"]) == ("fit", [])


@pytest.mark.parametrize("case", sorted(recorded.CASES))
def test_a_recorded_fault_drains_under_its_code_and_alone(look: Look, case: str) -> None:
    first = look(None if recorded.CASES[case].get("second") else case)
    report = first
    if recorded.CASES[case].get("second"):
        assert codes(first) == set()
        report = look(case)
        if case == "slowed-by-heat":
            assert codes(report) == set()
            report = look(case)
    assert codes(report) == {recorded.CASES[case]["finds"]}
    assert report["reason"].startswith(recorded.CASES[case]["finds"])


def test_a_good_amd_machine_is_fit_and_an_uncorrectable_error_is_not(
    look: Look, tmp_path: Path
) -> None:
    amd = {"gpus": {"vendor": "amd", "count": 8, "memory_gib": 192}, "nics": [], "mounts": []}
    files = tmp_path / "root/sys/class/drm/renderD130/device/ras/umc_err_count"
    recorded.make_machine(tmp_path, files="files-amd.yml")
    assert look(**amd)["reason"] == ""
    files.write_text("ue: 3\nce: 9\n")
    assert codes(look(**amd)) == {"ecc-uncorrectable"}


@pytest.mark.parametrize("tool", ["nvidia-smi", "journalctl", "chronyc"])
def test_a_tool_that_fails_is_a_failure_of_the_node(
    look: Look, tool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = recorded.make_machine

    def broken(folder: Path, *more: Any) -> None:
        make(folder, *more)
        (folder / "bin" / tool).write_text("#!/bin/sh\necho 'no device' >&2\nexit 9\n")

    monkeypatch.setattr(recorded, "make_machine", broken)
    report = look()
    assert codes(report) == {"not-looked-at"}
    assert "no device" in report["reason"]


def test_a_tool_that_hangs_costs_its_time_and_is_a_failure(
    look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = recorded.make_machine

    def hanging(folder: Path, *more: Any) -> None:
        make(folder, *more)
        (folder / "bin/nvidia-smi").write_text("#!/bin/sh\nsleep 600\n")

    monkeypatch.setattr(recorded, "make_machine", hanging)
    report = look(timeout_s=1)
    assert codes(report) == {"check-hung"}


def test_an_xid_stays_until_it_is_acknowledged(look: Look, health: Callable[..., int]) -> None:
    assert codes(look("xid-79")) == {"xid"}
    assert codes(look()) == {"xid"}
    assert health("acknowledge", "errors") == 0
    assert codes(look()) == set()


def test_an_xid_is_over_when_the_machine_was_restarted(look: Look, tmp_path: Path) -> None:
    look("xid-79")
    store = json.loads((tmp_path / "state/memory.json").read_text())
    store["kernel log"]["boot"] = "an earlier boot"
    (tmp_path / "state/memory.json").write_text(json.dumps(store))
    assert codes(look()) == set()


def test_a_swapped_part_stays_until_it_is_acknowledged(
    look: Look, health: Callable[..., int]
) -> None:
    look()
    assert codes(look("swapped-gpu")) == {"part-swapped"}
    assert health("acknowledge", "parts") == 0
    assert codes(look()) == {"part-swapped"}, "the first one is back in the place of the second"


def test_without_settings_the_node_is_unfit(health: Callable[..., int], tmp_path: Path) -> None:
    (tmp_path / "node-health.json").write_text('{"node": "gpu001", "gpu_count": 8}')
    assert health("check") == 1
    assert "gpu_count" in json.loads((tmp_path / "report.json").read_text())["reason"]


def test_a_list_of_parts_that_is_broken_is_a_failure(look: Look, tmp_path: Path) -> None:
    look()
    (tmp_path / "state/parts.json").write_text("{")
    assert look()["reason"].startswith("not-looked-at")


def test_a_mount_that_answers_with_an_error_is_a_failure(look: Look, tmp_path: Path) -> None:
    look()
    there = tmp_path / "root/lustre"
    (there / "there").unlink()
    there.rmdir()
    body = recorded.text("files.yml")
    assert "/lustre/there" in body
    there.symlink_to("/nowhere/at/all")
    report = look_without_files(look)
    assert codes(report) == {"mount-broken"}
