"""`gcluster validate`: every mistake at once, with its place, as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

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
    assert done.stdout.endswith("ok: campus: 4 pools, 68 hosts\n")


def test_all_mistakes_are_reported_in_file_order_with_a_caret(
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


def test_a_day_that_is_past_is_an_error_and_one_to_come_is_not(
    run: Callable[..., Any], spec: Path
) -> None:
    text = spec.read_text()
    spec.write_text(f"{text}budget: {{expires_on: 2020-02-29}}\n")
    done = run("validate", str(spec))
    assert done.exit_code == 2
    assert "GC863" in done.stdout
    spec.write_text(f"{text}budget: {{expires_on: 2999-01-01}}\n")
    assert run("validate", str(spec)).exit_code == 0


def test_several_specs_are_reported_apart_and_one_wrong_one_fails_all(
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
    answer = json.loads(run("validate", str(spec), str(path), "--format", "json").stdout)
    good, bad = answer["specs"]
    assert answer["ok"] is False
    assert (good["ok"], good["cluster"], good["pools"], good["hosts"]) == (True, "demo", 2, 5)
    assert bad["ok"] is False
    first = bad["diagnostics"][0]
    assert (first["code"], first["span"]["line"], first["span"]["column"]) == ("GC001", 6, 21)


def test_a_missing_file_is_reported_without_an_excerpt(
    run: Callable[..., Any], tmp_path: Path
) -> None:
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


def test_a_file_name_that_is_no_utf_8_is_reported_in_every_format(
    run: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "a\udcff.yaml"
    path.write_text(WRONG, encoding="utf-8")
    for fmt in ("text", "json", "sarif", "github", "junit"):
        report = tmp_path / "report"
        done = run("validate", str(path), "--format", fmt, "--output", str(report))
        assert done.exit_code == 2
        assert "GC001" in report.read_text(encoding="utf-8")


def test_escape_sequences_in_a_spec_never_reach_the_terminal(
    run: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "evil.yaml"
    path.write_text('apiVersion: gcluster/v1\n"\\e[31mred": 1\nnäme\u202e: 2\n', encoding="utf-8")
    done = run("validate", str(path))
    assert done.exit_code == 2
    assert "\x1b" not in done.stdout
    assert "\u202e" not in done.stdout


def test_a_folder_is_checked_and_counted_at_the_end(
    run: Callable[..., Any], spec: Path, tmp_path: Path
) -> None:
    (tmp_path / "bad.yaml").write_text(WRONG, encoding="utf-8")
    (tmp_path / "pod.yaml").write_text("apiVersion: v1\n", encoding="utf-8")
    done = run("validate", str(spec.parent))
    assert done.exit_code == 2
    assert "note[GC856]: left out: not a cluster spec\n" in done.stdout
    assert done.stdout.endswith("ok: demo: 2 pools, 5 hosts\n2 specs: 2 errors, 1 note\n")


def test_a_folder_without_a_spec_is_an_error(run: Callable[..., Any], tmp_path: Path) -> None:
    done = run("validate", str(tmp_path))
    assert done.exit_code == 2
    assert done.stdout.startswith("error[GC855]: no cluster spec in this folder\n")


def test_clashes_between_files_fail_though_each_is_right(
    run: Callable[..., Any], spec: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.yaml"
    copy.write_bytes(spec.read_bytes())
    assert run("validate", str(spec)).exit_code == run("validate", str(copy)).exit_code == 0
    done = run("validate", str(spec), str(copy))
    assert done.exit_code == 2
    assert f'another cluster is named "demo": {spec}:2' in done.stdout


@pytest.mark.parametrize(
    ("fmt", "begins"),
    [("json", "{"), ("sarif", "{"), ("github", "::error "), ("junit", "<?xml "), ("text", "err")],
)
def test_the_report_goes_to_a_file_and_the_text_to_the_terminal(
    run: Callable[..., Any], tmp_path: Path, fmt: str, begins: str
) -> None:
    path, report = tmp_path / "bad.yaml", tmp_path / "report"
    path.write_text(WRONG, encoding="utf-8")
    done = run("validate", str(path), "--format", fmt, "-o", str(report))
    assert done.exit_code == 2
    assert done.stdout.startswith("error[GC001]")
    written = report.read_text(encoding="utf-8")
    assert written.startswith(begins)
    if fmt != "text":
        assert written == run("validate", str(path), "--format", fmt).stdout


def test_a_report_that_can_t_be_written_is_reported(run: Callable[..., Any], spec: Path) -> None:
    done = run("validate", str(spec), "-o", str(spec.parent / "no" / "report"))
    assert (done.exit_code, "GC948" in done.stderr) == (1, True)


def test_fix_shows_a_diff_and_what_is_left_and_writes_nothing(
    run: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(WRONG.replace("count: 4", "count: many"), encoding="utf-8")
    before = path.read_bytes()
    done = run("validate", str(path), "--fix")
    assert done.exit_code == 2
    assert "-  gpu: {site: here, machin: sim.h100x8, count: many}\n" in done.stdout
    assert "+  gpu: {site: here, machine: sim.h100x8, count: many}\n" in done.stdout
    assert "2 findings would be fixed" in done.stdout
    assert done.stdout.endswith("\n1 error\n")
    assert path.read_bytes() == before


def test_fix_with_write_fixes_the_file_and_answers_for_it_as_it_is_now(
    run: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(WRONG, encoding="utf-8")
    done = run("validate", str(path), "--fix", "--write")
    assert (done.exit_code, done.stdout.splitlines()[-1]) == (0, "ok: wrong: 2 pools, 5 hosts")
    fixed = WRONG.replace("machin:", "machine:").replace("typ:", "type:")
    assert path.read_text(encoding="utf-8") == fixed
    assert run("validate", str(path), "--fix", "--write").stdout == "ok: wrong: 2 pools, 5 hosts\n"


def test_fix_alone_answers_for_the_file_as_it_is(run: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(WRONG, encoding="utf-8")
    assert run("validate", str(path), "--fix").exit_code == 2


def test_fix_and_write_with_a_format_leave_the_report_whole(
    run: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(WRONG, encoding="utf-8")
    answer = json.loads(run("validate", str(path), "--fix", "--write", "--format", "json").stdout)
    assert answer["ok"] is True


@pytest.mark.parametrize(
    "words", [["x", "--write"], ["-", "--fix", "--write"], ["x", "--fix", "--format", "json"]]
)
def test_words_that_do_not_go_together_are_a_usage_error(
    run: Callable[..., Any], words: list[str]
) -> None:
    done = run("validate", *words)
    assert (done.exit_code, "GC941" in done.output) == (64, True)


POLICIES = """\
apiVersion: gcluster/policies/v1
policies:
  - name: few
    owner: ops@example.org
    description: A pool has at most three nodes.
    applies_to: pool
    rule: pool.count == null || pool.count.max <= 3
    severity: SEVERITY
"""


@pytest.mark.parametrize(("severity", "code"), [("error", 4), ("warning", 0)])
def test_a_policy_that_is_not_kept_is_reported_with_its_owner(
    run: Callable[..., Any], spec: Path, severity: str, code: int
) -> None:
    text = POLICIES.replace("SEVERITY", severity)
    spec.with_name("policies.yaml").write_text(text, encoding="utf-8")
    done = run("validate", str(spec))
    assert done.exit_code == code
    assert f'{severity}[GC801]: policy "few" of ops@example.org' in done.stdout


def test_errors_of_the_spec_weigh_more_than_policies(
    run: Callable[..., Any], spec: Path, tmp_path: Path
) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(POLICIES.replace("SEVERITY", "error"), encoding="utf-8")
    bad = tmp_path / "bad.yaml"
    bad.write_text(WRONG, encoding="utf-8")
    assert run("validate", str(spec), "--policies", str(rules)).exit_code == 4
    assert run("validate", str(spec), str(bad), "--policies", str(rules)).exit_code == 2


def test_a_plain_validate_imports_no_policy_language(shell: Callable[..., Any], spec: Path) -> None:
    done = shell("validate", str(spec), PYTHONPROFILEIMPORTTIME="1")
    assert [name for name in ("policies.load", "cel_expr") if name in done.stderr] == []


def test_what_a_cloud_does_not_make_is_an_error_without_an_account(
    run: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "azure.yaml"
    path.write_text(
        "apiVersion: gcluster/v1\nname: demo\nsites:\n"
        "  east: {provider: azure, subscription: s, region: eastus,\n"
        "         network: {admin_cidrs: [192.0.2.0/24]}}\n"
        "pools:\n"
        "  head: {site: east, role: controller, machine: Standard_D4s_v5, image: mine,\n"
        "         public_address: true}\n"
        "  gpu: {site: east, machine: Standard_ND96isr_H100_v5, count: 2}\n"
        "scheduler: {type: slurm}\n"
    )
    done = run("validate", str(path))
    assert done.exit_code == 2
    assert 'error[GC990]: pool "head": image "mine" is neither' in done.stdout
    assert f"{path}:7:" in done.stdout
