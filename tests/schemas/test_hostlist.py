"""Host ranges: what they expand to, what is wrong with them, and the round trip."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcluster.schemas.derived.hostlist import MAX_HOSTS, HostlistError, expand, fold, host_order

_NAMES = st.lists(
    st.one_of(
        st.from_regex(r"[a-z]{1,3}[0-9]{1,3}", fullmatch=True),
        st.from_regex(r"r[0-3]n0?[0-9]{1,2}(-gpu)?", fullmatch=True),
        st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,24}", fullmatch=True),
        st.from_regex(r"10\.0\.[0-2]\.[0-9]{1,2}", fullmatch=True),
    ),
    max_size=40,
    unique=True,
)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("head01", ["head01"]),
        ("gpu[001-003]", ["gpu001", "gpu002", "gpu003"]),
        ("gpu[8-11]", ["gpu8", "gpu9", "gpu10", "gpu11"]),
        ("gpu[08-10,20]", ["gpu08", "gpu09", "gpu10", "gpu20"]),
        ("gpu[99-101]", ["gpu99", "gpu100", "gpu101"]),
        ("gpu[098-100]", ["gpu098", "gpu099", "gpu100"]),
        ("gpu[09-10]-ib", ["gpu09-ib", "gpu10-ib"]),
        ("a,b[1-2]", ["a", "b1", "b2"]),
        ("10.0.1.[1-3]", ["10.0.1.1", "10.0.1.2", "10.0.1.3"]),
        ("fd00::[1-2]", ["fd00::1", "fd00::2"]),
        ("r[1-2]n[1,3]", ["r1n1", "r1n3", "r2n1", "r2n3"]),
    ],
)
def test_a_range_expands_to_its_names_in_order(text: str, names: list[str]) -> None:
    assert expand(text) == names


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty host range"),
        ("a,,b", "empty name"),
        ("a,", "empty name"),
        ("gpu[]", 'empty "\\[\\]"'),
        ("gpu[1-2", 'unclosed "\\["'),
        ("gpu1-2]", '"\\]" without "\\["'),
        ("gpu[[1-2]]", "nested"),
        ("gpu[2-1]", "reversed range 2-1"),
        ("gpu[001-64]", "write 001-064 or 1-64"),
        ("gpu[1-064]", "write 001-064 or 1-64"),
        ("gpu[a-c]", "neither a number nor a range"),
        ("gpu[1,,2]", "neither a number nor a range"),
        ("gpu[1-2-3]", "neither a number nor a range"),
        ("gpu[²]", "neither a number nor a range"),
        ("gpu 1", "can't be part of a host name"),
        ("gpu;reboot", "can't be part of a host name"),
        ("gpu1\n", "can't be part of a host name"),
        ("-oProxyCommand", "can't start with"),
        ("gpu[1-100001]", "more than 100,000"),
        ("a[1-1000]b[1-1000]", "more than 100,000"),
        ("a[1-99999],b[1-2]", "more than 100,000"),
        ("[1-90000]" * 3000, "more than 100,000"),
        (f"gpu[{'9' * 5000}]", "more than 18 digits"),
    ],
)
def test_a_malformed_range_reports_what_is_wrong(text: str, reason: str) -> None:
    with pytest.raises(HostlistError, match=reason):
        expand(text)


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ([], ""),
        (["head01"], "head01"),
        (["gpu003", "gpu001", "gpu002", "gpu001"], "gpu[001-003]"),
        (["gpu9", "gpu10", "gpu11"], "gpu[9-11]"),
        (["gpu1", "gpu01"], "gpu[1,01]"),
        (["n08", "n09", "n10", "n12"], "n[08-10,12]"),
        (["r1n1", "r1n2", "r2n1", "r2n2", "r3n1"], "r[1-2]n[1-2],r3n1"),
        (["a1", "b1", "a2"], "a[1-2],b1"),
        (["gpu-a100-1", "gpu-a100-2"], "gpu-a100-[1-2]"),
    ],
)
def test_names_fold_to_the_shortest_range_that_keeps_order(names: list[str], text: str) -> None:
    assert fold(names) == text


@given(_NAMES)
def test_folding_and_expanding_gives_the_sorted_names_back(names: list[str]) -> None:
    folded = fold(names)

    assert (expand(folded) if folded else []) == sorted(names, key=host_order)


@given(st.text(alphabet="gr[]-,.019 ", max_size=30))
def test_any_text_is_a_range_or_reports_why_not(text: str) -> None:
    try:
        names = expand(text)
    except HostlistError as error:
        assert str(error)  # noqa: PT017  # both outcomes are right; the message must be there
    else:
        assert 0 < len(names) <= MAX_HOSTS


def test_ten_thousand_names_fold_to_one_range() -> None:
    assert fold(f"gpu{number:05d}" for number in range(10_000)) == "gpu[00000-09999]"
