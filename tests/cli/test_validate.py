"""`gcluster validate`: every mistake at once, with its place, as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

WRONG = """\
apiVersion: gcluster/v1
name: wrong
sites: {here: {provider: local}}
pools:
  head: {site: here, role: controller}
  gpu: {site: here, machin: sim.h100x8, count: 4}
scheduler: {typ: slurm}
"""


def test_a_valid_spec_is_counted(run: Callable[..., Any], spec: Path) -> None:
    done = run("validate", str(spec))
    assert (done.exit_code, done.stdout) == (0, "ok: demo: 2 pools, 5 hosts\n")


def test_bare_metal_ranges_are_counted_host_by_host(run: Callable[..., Any], root: Path) -> None:
    done = run("validate", str(root / "examples/bare-metal.yaml"))
    assert done.stdout == "ok: campus: 4 pools, 68 hosts\n"


def test_all_mistakes_are_told_in_file_order_with_a_caret(
    run: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(WRONG, encoding="utf-8")
    done = run("validate", str(path))
    assert done.exit_code == 2
    assert done.stdout.index('"machin"') < done.stdout.index('"typ"')
    assert f"--> {path}:6:21" in done.stdout
    line = "6 |   gpu: {site: here, machin: sim.h100x8, count: 4}"
    assert f"{line}\n  |                     ^^^^^^\n" in done.stdout
    assert done.stdout.endswith("errors\n")


def test_several_specs_are_told_apart_and_one_wrong_one_fails_all(
    run: Callable[..., Any], spec: Path, tmp_path: Path
) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(WRONG, encoding="utf-8")
    done = run("validate", str(spec), str(path))
    assert done.exit_code == 2
    assert "ok: demo" in done.stdout
    assert f"{path}:6:21" in done.stdout


def test_stdin_is_read_where_the_path_is_a_dash(run: Callable[..., Any]) -> None:
    done = run("validate", "-", stdin=WRONG)
    assert done.exit_code == 2
    assert "--> <stdin>:6:21" in done.stdout


def test_json_is_one_document_with_the_same_findings(
    run: Callable[..., Any], spec: Path, tmp_path: Path
) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(WRONG, encoding="utf-8")
    told = json.loads(run("validate", str(spec), str(path), "--format", "json").stdout)
    good, bad = told["specs"]
    assert told["ok"] is False
    assert (good["ok"], good["cluster"], good["pools"], good["hosts"]) == (True, "demo", 2, 5)
    assert bad["ok"] is False
    first = bad["diagnostics"][0]
    assert (first["code"], first["span"]["line"], first["span"]["column"]) == ("GC001", 6, 21)


def test_a_missing_file_is_told_without_an_excerpt(run: Callable[..., Any], tmp_path: Path) -> None:
    done = run("validate", str(tmp_path / "nope.yaml"))
    assert done.exit_code == 2
    assert "nope.yaml" in done.stdout
    assert "^" not in done.stdout


def test_a_binary_file_a_folder_and_an_empty_file_are_errors_not_tracebacks(
    run: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "binary.yaml").write_bytes(bytes(range(256)))
    (tmp_path / "empty.yaml").touch()
    for path in (tmp_path / "binary.yaml", tmp_path / "empty.yaml", tmp_path):
        done = run("validate", str(path))
        assert done.exit_code == 2
        assert done.stdout.startswith("error[GC0")


def test_escape_sequences_in_a_spec_never_reach_the_terminal(
    run: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "evil.yaml"
    path.write_text('apiVersion: gcluster/v1\n"\\e[31mred": 1\nnäme\u202e: 2\n', encoding="utf-8")
    done = run("validate", str(path))
    assert done.exit_code == 2
    assert "\x1b" not in done.stdout
    assert "\u202e" not in done.stdout
