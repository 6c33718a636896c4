"""A spec with twenty different mistakes: each is reported once, at its place, in file order."""

from __future__ import annotations

import pytest
from tests.golden_files import CASES, GoldenFiles, finding, read_cases

from gcluster.schemas.load import load_text

_CASES = CASES / "many_mistakes.yaml"
_TEXT = read_cases(_CASES)["twenty"]["spec"]
_FIXED = {
    "GC001": ("onwer:", "owner:"),
    "GC310": ("[0.0.0.0/0]", "[192.0.2.0/24]"),
    "GC305": ("172.16.0.0/16", "10.60.0.0/16"),
    "GC112": ("10.20.1.[1-9]", "10.20.1.[1-8]"),
    "GC115": ("quorum: 5", "quorum: 4"),
    "GC102": ("H1000:8", "dgx-h100"),
    "GC110": ("old[08-01]", "old[01-08]"),
    "GC116": ("{min: 4, max: 2}", "{min: 2, max: 4}"),
    "GC202": ("infiniband-ndr", "efa-v2"),
    "GC124": ("[flex-start]", "[on-demand]"),
    "GC108": ('hosts: "lab[01-02]", count: 2', 'hosts: "lab[01-02]"'),
    "GC416": ("5000 GiB", "4800 GiB"),
    "GC404": ("mount: /home, server: 10.20.0.8", "mount: /home2, server: 10.20.0.8"),
    "GC401": ("site: nowhere", "site: east"),
    "GC504": (", ghost]", "]"),
    "GC514": ("[lwo]", "[low]"),
    "GC523": ("a: {parent: b}", "a: {}"),
    "GC512": ("grace, uid: 2001", "grace, uid: 2002"),
    "GC602": ("570.86.15", "580.126.16"),
    "GC201": ("8GiB..8B", "8B..8GiB"),
}


def test_each_of_twenty_mistakes_is_found_once_and_in_the_order_of_the_file(
    golden: GoldenFiles,
) -> None:
    found = load_text(_TEXT).diagnostics

    golden.check_case(_CASES, "twenty", "finds", [finding(diagnostic) for diagnostic in found])
    assert sorted(diagnostic.code for diagnostic in found) == sorted(_FIXED)
    lines = [diagnostic.span.line for diagnostic in found if diagnostic.span is not None]
    assert lines == sorted(lines)
    assert len(lines) == 20


@pytest.mark.parametrize("code", _FIXED)
def test_fixing_one_ends_that_finding_and_no_other_appears(code: str) -> None:
    wrong, right = _FIXED[code]
    assert _TEXT.count(wrong) == 1
    found = [d.code for d in load_text(_TEXT.replace(wrong, right)).diagnostics if d.is_error]

    assert sorted(found) == sorted(set(_FIXED) - {code})
