"""Checking what was named: files, folders and standard input, with clashes and policies."""

from __future__ import annotations

from pathlib import Path

import pytest

from gcluster.schemas.fleet.checked import Report, check, gather

SPEC = """\
apiVersion: gcluster/v1
name: demo
sites: {lab: {provider: simulated}}
pools: {head: {site: lab, role: controller}, gpu: {site: lab, machine: sim.h100x8, count: 4}}
scheduler: {type: slurm}
"""
FEW = """\
apiVersion: gcluster/policies/v1
policies:
  - name: few
    owner: ops@example.org
    description: A pool has at most MOST nodes.
    applies_to: pool
    rule: pool.count == null || pool.count.max <= MOST
"""


def _put(path: Path, text: str = SPEC, **words: str) -> Path:
    for old, new in words.items():
        text = text.replace(old, new)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def _check(*names: Path | str, stdin: bytes = b"", policies: Path | None = None) -> Report:
    return check(gather([str(name) for name in names], lambda: stdin), policies=policies)


def _codes(report: Report) -> list[str]:
    return [found.code for found in report.found()]


def test_one_spec_is_not_many(tmp_path: Path) -> None:
    report = _check(_put(tmp_path / "a.yaml"))
    assert (report.many, len(report.specs), _codes(report)) == (False, 1, [])


def test_a_folder_is_many_even_with_one_spec(tmp_path: Path) -> None:
    _put(tmp_path / "a.yaml")
    assert _check(tmp_path).many


def test_a_file_named_twice_in_two_ways_is_read_once(tmp_path: Path) -> None:
    path = _put(tmp_path / "a.yaml")
    report = _check(path, tmp_path, f"{tmp_path}/./a.yaml")
    assert [checked.loaded.file for checked in report.specs] == [str(path)]
    assert _codes(report) == []


def test_a_clash_is_reported_at_the_later_file_and_makes_it_wrong(tmp_path: Path) -> None:
    first, second = _put(tmp_path / "z.yaml"), _put(tmp_path / "a" / "a.yaml")
    report = _check(first, second)
    assert [[found.code for found in spec.diagnostics] for spec in report.specs] == [[], ["GC851"]]
    assert report.is_wrong
    assert report.specs[1].spec is None


def test_standard_input_clashes_like_a_file(tmp_path: Path) -> None:
    report = _check(_put(tmp_path / "a.yaml"), "-", stdin=SPEC.encode())
    assert report.specs[1].loaded.file == "<stdin>"
    assert _codes(report) == ["GC851"]


def test_a_policy_that_is_not_kept_refuses_and_the_spec_is_not_wrong(tmp_path: Path) -> None:
    _put(tmp_path / "policies.yaml", FEW, MOST="3")
    report = _check(_put(tmp_path / "a.yaml"))
    assert _codes(report) == ["GC801"]
    assert (report.is_wrong, report.is_refused) == (False, True)


def test_a_spec_with_errors_is_invalid_whatever_the_policies(tmp_path: Path) -> None:
    _put(tmp_path / "policies.yaml", FEW, MOST="3")
    report = _check(_put(tmp_path / "a.yaml", SPEC, machine="machin"))
    assert (report.is_wrong, report.is_refused) == (True, False)


def test_the_policies_of_each_spec_s_folder_are_applied_to_it_alone(tmp_path: Path) -> None:
    _put(tmp_path / "policies.yaml", FEW, MOST="3")
    _put(tmp_path / "a.yaml")
    _put(tmp_path / "sub" / "b.yaml", SPEC, demo="other")
    report = _check(tmp_path)
    answer = {Path(spec.loaded.file).name: len(spec.breaches) for spec in report.specs}
    assert answer == {"a.yaml": 1, "b.yaml": 0}
    assert len(report.policies) == 1


def test_policies_that_are_named_replace_those_of_the_folder(tmp_path: Path) -> None:
    _put(tmp_path / "policies.yaml", FEW, MOST="3")
    ours = _put(tmp_path / "ours" / "rules.yaml", FEW, MOST="4")
    assert _codes(_check(_put(tmp_path / "a.yaml"), policies=ours)) == []


def test_policies_that_can_t_be_read_refuse_and_are_reported_once(tmp_path: Path) -> None:
    _put(tmp_path / "policies.yaml", FEW, MOST="3 +")
    _put(tmp_path / "a.yaml")
    _put(tmp_path / "b.yaml", SPEC, demo="other")
    report = _check(tmp_path)
    assert _codes(report) == ["GC811"]
    assert report.is_refused
    assert str(tmp_path / "policies.yaml") in report.texts()


@pytest.mark.parametrize("name", ["", "x" * 5000, "a\nb", "/dev/null/x", "x" * 5000 + "/x"])
def test_a_name_that_is_no_file_is_an_answer(name: str) -> None:
    assert _codes(_check(name)) == ["GC021"]
