"""Loading: nothing a file may hold or be raises, and every answer has a place."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcluster.schemas.load import load, load_text
from gcluster.schemas.structure.source import MAX_BYTES

_EXAMPLES = sorted((Path(__file__).parent.parent.parent / "examples").glob("*.yaml"))
_TEXTS = [path.read_text(encoding="utf-8") for path in _EXAMPLES]
_SMALL = """\
apiVersion: gcluster/v1
name: demo
sites: {here: {provider: local}}
pools: {head: {site: here, role: controller}, gpu: {site: here, machine: sim.h100x8, count: 4}}
scheduler: {type: slurm}
"""
_FRAGMENTS = [
    "\t", "\n", ": ", "- ", "{", "}", "[", "]", "&a ", "*a", "!!x ", "'", '"', "#", "---\n", "é",
    "\x01", "<<: ", "? ", "| \n", "9" * 30, ".nan", "~", "%YAML 1.1\n", "gpu[1-", "-1", "yes",
]  # fmt: skip


@pytest.mark.parametrize("path", _EXAMPLES, ids=lambda path: path.name)
def test_an_example_has_a_spec_and_nothing_to_report(path: Path) -> None:
    loaded = load(path)

    assert loaded.diagnostics == ()
    assert loaded.spec is not None
    assert loaded.text == path.read_text(encoding="utf-8")


def test_a_spec_that_is_right_carries_the_defaults() -> None:
    spec = load_text(_SMALL).spec

    assert spec is not None
    assert spec.pools["gpu"].role == "compute"
    assert spec.smoke.allreduce.sizes is None


@given(st.text())
def test_any_text_gets_an_answer(text: str) -> None:
    loaded = load_text(text)

    assert (loaded.spec is None) == any(found.is_error for found in loaded.diagnostics)


@given(st.binary())
def test_any_bytes_get_an_answer(content: bytes) -> None:
    assert load_text(content).diagnostics


@given(st.sampled_from(_TEXTS), st.randoms(use_true_random=False))
def test_a_damaged_example_gets_an_answer_inside_its_text(text: str, chance: random.Random) -> None:
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(text))
        removed = chance.choice([0, 1, chance.randint(0, 40)])
        text = text[:place] + chance.choice(["", *_FRAGMENTS]) + text[place + removed :]
    loaded = load_text(text)

    lines = text.count("\n") + text.count("\r") + 1
    for found in loaded.diagnostics:
        assert found.summary
        assert found.span is not None
        assert 1 <= found.span.line <= lines


@given(st.sampled_from(_TEXTS), st.integers(0, 40))
def test_a_missing_line_gets_an_answer(text: str, number: int) -> None:
    lines = text.splitlines(keepends=True)
    del lines[number % len(lines)]
    loaded = load_text("".join(lines))

    assert (loaded.spec is None) == any(found.is_error for found in loaded.diagnostics)


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "GC016"),
        (b"\n\n", "GC016"),
        (b"---\n", "GC016"),
        (b"\x7fELF\x02\x01\x01\0\0\0\xff", "GC017"),
        (b"name: a\0b", "GC017"),
        (b"name: \xff\xfe\xfa", "GC017"),
        ("name: x".encode("utf-16"), "GC017"),
        (b"name: \x07", "GC017"),
        (b"just words", "GC018"),
        (b"[" * 5000, "GC019"),
        (b"#" * (MAX_BYTES + 1), "GC020"),
        (b"a: [" + b"1," * 1_100_000 + b"]", "GC020"),
    ],
    ids=lambda value: value if isinstance(value, str) else repr(value[:16]),
)
def test_content_that_is_no_spec_is_named(content: bytes, code: str) -> None:
    loaded = load_text(content)

    assert [found.code for found in loaded.diagnostics] == [code]
    assert loaded.spec is None


def test_the_size_limit_is_stated_and_the_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    with path.open("wb") as stream:
        stream.truncate(10**12)  # sparse: only its size is large

    (found,) = load(path).diagnostics

    assert found.code == "GC020"
    assert "8 MB" in found.summary


def test_bytes_that_are_not_utf8_are_located() -> None:
    (found,) = load_text(b"apiVersion: gcluster/v1\nname: d\xe9mo\n").diagnostics

    assert found.span is not None
    assert (found.code, found.span.line, found.span.column) == ("GC017", 2, 8)


def test_a_byte_order_mark_moves_no_column() -> None:
    plain = load_text(_SMALL.replace("demo", "Demo").encode()).diagnostics
    marked = load_text(b"\xef\xbb\xbf" + _SMALL.replace("demo", "Demo").encode()).diagnostics

    assert plain == marked
    assert load_text(b"\xef\xbb\xbf" + _SMALL.encode()).spec is not None


def test_windows_line_ends_move_no_line() -> None:
    wrong = _SMALL.replace("count: 4", "count: four")

    assert [d.span for d in load_text(wrong).diagnostics] == [
        d.span for d in load_text(wrong.replace("\n", "\r\n")).diagnostics
    ]


def test_a_file_that_can_not_be_read_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "none.yaml", tmp_path, tmp_path / "a\0b"):
        (found,) = load(path).diagnostics
        assert found.code == "GC021"


def test_a_broken_part_does_not_hide_what_is_wrong_elsewhere() -> None:
    text = _SMALL.replace("provider: local", "provider: local, runtme: docker")
    loaded = load_text(text.replace("sim.h100x8, count: 4", "H100:8, count: 4"))

    assert [found.code for found in loaded.diagnostics] == ["GC001", "GC102"]


def test_diagnostics_come_in_file_order() -> None:
    text = "users: [{name: Ada, uid: 1}]\nzzz: 1\n" + _SMALL.replace("here, role", "her, rol")
    lines = [found.span.line for found in load_text(text).diagnostics if found.span]

    assert len(lines) > 3
    assert lines == sorted(lines)


def test_the_document_stays_when_the_spec_is_wrong() -> None:
    loaded = load_text(_SMALL.replace("count: 4", "count: four"))

    assert loaded.document is not None
    assert loaded.document.data["name"] == "demo"


def test_a_right_spec_imports_nothing_heavy() -> None:
    program = (
        "import sys; from pathlib import Path; from gcluster.schemas.load import load;"
        f"assert load(Path({str(_EXAMPLES[0])!r})).spec;"
        "heavy = {'jsonschema', 'difflib', 'rich', 'typer', 'ansible', 'obstore', 'subprocess'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    src = str(Path(__file__).parent.parent.parent / "src")
    result = subprocess.run(
        [sys.executable, "-c", program],
        check=True,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": src},
    )

    assert result.stdout.strip() == "[]"


def test_a_thousand_mistakes_are_listed_and_more_are_counted() -> None:
    extra = "".join(f"k{number}: 1\n" for number in range(3000))
    codes = [found.code for found in load_text(_SMALL + extra).diagnostics]

    assert codes.count("GC001") == 1000
    assert codes.count("GC024") == 1
