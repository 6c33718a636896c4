"""Recorded answers of tools: what their heads say, and that no case repeats the good one."""

from __future__ import annotations

import re
from pathlib import Path

NEEDED = ("tool", "version", "machine")
_HEAD = re.compile(r"# (\w+): (.+)")


def recordings(root: Path) -> list[Path]:
    """Return every recording, in order."""
    return sorted(path for path in root.glob("molecule/*/recordings/*") if path.is_file())


def head(path: Path) -> dict[str, str]:
    """Return the "# key: value" lines that a recording begins with."""
    answer = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        match = _HEAD.fullmatch(line)
        if match is None:
            break
        answer[match[1]] = match[2]
    return answer


def test_every_recording_names_tool_version_and_machine(root: Path) -> None:
    assert recordings(root)
    silent = [path for path in recordings(root) if not all(head(path).get(key) for key in NEEDED)]
    assert silent == []


def test_a_recording_that_answers_is_named_after_its_tool(root: Path) -> None:
    answering = [path for path in recordings(root) if path.suffix not in {".yml", ".json"}]
    assert [path for path in answering if head(path)["tool"] != path.name] == []


def test_a_call_of_a_case_is_answered_otherwise_than_in_the_good_one(root: Path) -> None:
    repeated = []
    for path in recordings(root):
        good, *cases = re.split(r"^== ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        known = set(_answers(good))
        repeated += [
            f"{path}: {case.split()[0]}" for case in cases if not set(_answers(case)) - known
        ]
    assert repeated == []


def test_a_program_that_takes_modules_out_of_the_kernel_answers_for_each_by_name(
    root: Path,
) -> None:
    alike = [
        path
        for path in recordings(root)
        if "rmmod" in path.name and f"$ {path.name} *" in path.read_text(encoding="utf-8")
    ]
    assert alike == [], "a module that is held, or another one, would be taken out all the same"


def test_mlnx_qos_answers_for_eight_priorities_and_eight_classes(root: Path) -> None:
    text = (root / "molecule/roce/recordings/mlnx_qos").read_text(encoding="utf-8")
    whole = [answer for answer in _answers(text) if "PFC configuration" in answer]
    assert whole
    for answer in whole:
        assert len(re.findall(r"^\tprio:\d dscp:", answer, re.MULTILINE)) in {0, 8}
        assert re.findall(r"^tc: (\d) ", answer, re.MULTILINE) == list("01234567")
        assert sorted(re.findall(r"^\t priority: +(\d)$", answer, re.MULTILINE)) == list("01234567")


def _answers(section: str) -> list[str]:
    """Return each call of a section with what it printed."""
    return re.split(r"^(?=\$ )", section, flags=re.MULTILINE)[1:]
