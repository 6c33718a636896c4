"""The composer: YAML 1.2 scalars, marks, and limits."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gcluster.schemas.structure.compose import compose

_PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


def _data(text: str) -> Any:
    result = compose(text, file="t")
    assert result.diagnostics == []
    assert result.document is not None
    return result.document.data


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("no", "no"), ("on", "on"), ("true", True), ("False", False), ("~", None), ("", None),
        ("010", 10), ("0o10", 8), ("0x1F", 31), ("1_000", "1_000"), ("12:30:00", "12:30:00"),
        ("1e3", 1000.0), ("-.5", -0.5), ("+7", 7), ("1.", 1.0), ("2026-11", "2026-11"),
        ("'5'", "5"), ('"true"', "true"), ("!!str 5", "5"), ("!!int 5", 5), ("! 5", "5"),
        ("0b11", "0b11"), ("NO", "NO"), ("=", "="),
    ],
)  # fmt: skip
def test_a_scalar_means_what_yaml_1_2_has(written: str, meant: object) -> None:
    value = _data(f"a: {written}\n")["a"]

    assert value == meant
    assert type(value) is type(meant)


@given(_PLAIN)
def test_json_is_parsed_with_its_types(data: Any) -> None:
    text = yaml.safe_dump(
        {"root": data}, default_style='"', default_flow_style=True, allow_unicode=False
    )
    result = compose(text, file="t")

    assert result.document is not None
    assert result.document.data["root"] == yaml.safe_load(text)["root"]


def test_keys_and_values_are_located() -> None:
    result = compose("é: 1\nb:\n  - {c: ünï, d: [x]}\n  -\n", file="t")
    document = result.document
    assert document is not None

    def place(path: tuple[str | int, ...], *, key: bool = False) -> tuple[int, int, int]:
        span = document.locate(path, key=key)
        assert span is not None
        return span.line, span.column, span.end_column

    assert place(("é",)) == (1, 4, 5)
    assert place(("é",), key=True) == (1, 1, 2)
    assert place(("b",)) == (2, 1, 2)
    assert place(("b", 0, "c")) == (3, 9, 12)
    assert place(("b", 0, "d"), key=True) == (3, 14, 15)
    assert place(("b", 0, "d", 0)) == (3, 18, 19)
    assert place(("b", 0, "nope", "deeper")) == (3, 5, 21)
    assert place(()) == (1, 1, 5)


def test_an_alias_is_located_at_its_anchor() -> None:
    document = compose("a: &x {k: 1}\nb: *x\n", file="t").document
    assert document is not None

    assert document.data == {"a": {"k": 1}, "b": {"k": 1}}
    assert document.locate(("b",)) != document.locate(("a",))
    assert document.locate(("b", "k")) == document.locate(("a", "k"))


def test_every_duplicate_names_the_first_place() -> None:
    found = compose("a: 1\nb: 2\na: 3\na: 4\n", file="t").diagnostics

    assert [(d.code, d.span.line if d.span else 0) for d in found] == [("GC012", 3), ("GC012", 4)]
    assert all("line 1" in d.summary for d in found)


def test_pyyaml_without_libyaml_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "a: [1, {b: 'x'}]\nc: |\n  text\n"
    with_c = compose(text, file="t").document
    monkeypatch.setitem(__import__("sys").modules, "yaml._yaml", None)
    without = compose(text, file="t").document

    assert with_c is not None
    assert without is not None
    assert without.data == with_c.data
    for path in [("a",), ("a", 1, "b"), ("c",)]:
        assert without.locate(path) == with_c.locate(path)
