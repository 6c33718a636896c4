"""Traces in the Standard Workload Format: what is read and left out, and each mistake's line."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from tests.golden_files import CASES, GoldenFiles, case_names, read_cases, unpack

from gcluster.lifecycle.cluster.outcome import Exit, LifecycleError
from gcluster.lifecycle.operations.burst.simulate.swf import FIELDS, read_swf

CASE_FILE = CASES / "burst" / "bad_traces.yaml"
TRACE = """\
; Version: 2.2
; Computer: made by hand
;UnixStartTime: 1767225600
; Note: one
; Note: two

1 0 5 100.5 8 -1 -1 16 3600 -1 1 3 7 -1 2 -1 -1 -1
  2 10 5 100 8 -1 -1 -1 -1 -1 0 3 1 -1 1 -1 1 60
3 20 0 0 8 -1 -1 8 60 -1 5 3 1 -1 1 -1 -1 -1
4 20 0 50 8 -1 -1 8 60 -1 2 3 1 -1 1 -1 -1 -1
5 20 0 50 -1 -1 -1 -1 60 -1 1 3 1 -1 1 -1 -1 -1
6 5 0 0 8 -1 -1 8 60 -1 1 3 1 -1 1 -1 -1 -1
"""


def _messages(error: LifecycleError) -> str:
    lines = []
    for diagnostic in error.diagnostics:
        assert diagnostic.code == "GC957"
        assert diagnostic.span is not None
        lines.append(f"{diagnostic.span.line}: {diagnostic.summary}\n")
    return "".join(lines)


@pytest.mark.parametrize("case", case_names(CASE_FILE))
def test_a_bad_trace_is_refused_with_the_line_of_each_mistake(
    case: str, golden: GoldenFiles, tmp_path: Path
) -> None:
    unpack({"trace.swf": read_cases(CASE_FILE)[case]["trace"]}, tmp_path)
    with pytest.raises(LifecycleError) as refused:
        read_swf(tmp_path / "trace.swf")
    golden.check_case(CASE_FILE, case, "refused", _messages(refused.value))
    assert refused.value.exit_code == Exit.SPEC


def test_jobs_are_read_by_submit_time_with_what_the_trace_has(tmp_path: Path) -> None:
    path = tmp_path / "trace.swf"
    path.write_text(TRACE, encoding="utf-8")
    trace = read_swf(path)
    assert [job.number for job in trace.jobs] == [1, 6, 2]
    first, _sixth, second = trace.jobs
    assert (first.run, first.processors, first.requested) == (100.5, 16, 3600)
    assert (first.group, first.queue, first.preceding) == (7, 2, -1)
    assert (second.processors, second.requested) == (8, None)
    assert (second.preceding, second.think) == (1, 60)
    assert trace.begins == 1767225600
    assert trace.header["Note"] == "one"
    assert trace.left_out == {
        "never ran": 1,
        "part of a job that has a line as a whole": 1,
        "number of processors not known": 1,
    }


def test_an_archive_is_read_as_it_was_downloaded(tmp_path: Path) -> None:
    path = tmp_path / "trace.swf.gz"
    path.write_bytes(gzip.compress(TRACE.encode()))
    assert len(read_swf(path).jobs) == 3


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (gzip.compress(TRACE.encode(), mtime=0)[:40], "the archive ends too early"),
        (b"\x1f\x8bno archive", "can't be read"),
        (b"1 2\0 3", "this is no line of text"),
        (b"1" * 20_000, "this is no line of text"),
        (b"\xff\xfe\xfa", "a job has 18 numbers"),
    ],
    ids=["half-an-archive", "no-archive", "nul", "endless-line", "no-utf8"],
)
def test_what_is_no_trace_at_all_is_reported_none(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "trace.swf"
    path.write_bytes(content)
    with pytest.raises(LifecycleError) as refused:
        read_swf(path)
    assert message in _messages(refused.value)


def test_a_trace_that_is_not_there_is_a_finding(tmp_path: Path) -> None:
    with pytest.raises(LifecycleError) as refused:
        read_swf(tmp_path / "none.swf")
    assert "No such file" in _messages(refused.value)


def test_the_format_has_18_fields() -> None:
    assert len(FIELDS) == 18
