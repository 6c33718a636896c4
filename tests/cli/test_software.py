"""`gcluster software`: the tested sets, and what each pool of a spec gets."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gcluster.cli.console import Console
from gcluster.cli.render.spec.software import pools_text, sets_text
from gcluster.inventory.compile.node import node_facts
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load
from gcluster.schemas.stack import load_lock

_H100 = """\
apiVersion: gcluster/v1
name: research
sites: {room: {provider: bare-metal, ssh: {user: ops}}}
pools:
  head: {site: room, role: controller, hosts: head01}
  train:
    {site: room, machine: hgx-h100-8, hosts: gpu01, fabric: infiniband-ndr,
     cpu: {sockets: 2, cores: 56}, memory: 2000 GiB}
scheduler: {type: slurm}
software: {driver: "570"}
"""

Run = Callable[..., Any]


@pytest.fixture
def h100(tmp_path: Path) -> Path:
    """Return the path of a spec with one H100 pool."""
    path = tmp_path / "h100.yaml"
    path.write_text(_H100, encoding="utf-8")
    return path


def test_without_a_spec_every_tested_set_is_listed_with_its_evidence(run: Run) -> None:
    done = run("software")
    assert done.exit_code == 0
    for tested in load_lock().sets:
        assert f"{tested.name}   " in done.stdout
        assert tested.evidence.who in done.stdout


def test_the_sets_as_json_are_the_lock(run: Run) -> None:
    answer = json.loads(run("software", "--format", "json").stdout)["sets"]
    assert [each["name"] for each in answer] == [tested.name for tested in load_lock().sets]


def test_a_pool_shows_its_set_the_evidence_and_what_was_requested(run: Run, h100: Path) -> None:
    shown = run("software", str(h100), "--pool", "train").stdout
    assert "azure-hpc-ubuntu-22.04-570" in shown
    assert "Microsoft" in shown
    assert "pool head" not in shown
    rows = {line.split("  ")[2]: line for line in shown.splitlines() if line.startswith("    ")}
    assert rows["NVIDIA driver"].endswith("570.133.20  role nvidia_driver; as the spec says")
    assert rows["CUDA toolkit"].endswith("12.8        role cuda; from the set")
    assert rows["NVIDIA Container Toolkit"].endswith("(software.containers)")


def test_the_table_that_is_shown_is_the_one_that_is_compiled(run: Run, h100: Path) -> None:
    answer = json.loads(run("software", str(h100), "--format", "json").stdout)["pools"]["train"]
    spec = load(h100).spec
    assert spec is not None
    rows = node_facts(spec, load_catalog())["train"].software.rows
    assert answer["rows"] == list(msgspec.to_builtins(rows))
    shown = run("software", str(h100), "--pool", "train").stdout
    lines = [line for line in shown.splitlines() if line.startswith("    ")]
    assert [line.split("  ")[2] for line in lines] == [row.name for row in rows]


def test_the_pools_as_json_carry_versions_with_their_origin(run: Run, h100: Path) -> None:
    pools = json.loads(run("software", str(h100), "--format", "json").stdout)["pools"]
    assert list(pools) == ["head", "train"]
    found = {component["key"]: component for component in pools["train"]["components"]}
    assert (found["driver"]["version"], found["driver"]["origin"]) == ("570.133.20", "requested")
    assert pools["head"]["set"] is None


def test_pools_that_get_the_same_are_shown_once(run: Run, spec: Path) -> None:
    spec.write_text(spec.read_text().replace("simulated", "local"), encoding="utf-8")
    assert run("software", str(spec)).stdout.startswith("pools head, gpu\n")


def test_a_version_that_no_set_has_is_named_with_the_nearest(run: Run, h100: Path) -> None:
    h100.write_text(_H100.replace('"570"', '"575.57.08"'), encoding="utf-8")
    shown = run("software", str(h100)).stdout
    assert "differs NVIDIA driver 575.57.08: the set has 570.133.20" in shown


def test_a_wrong_spec_is_reported_and_ends_with_its_exit_code(run: Run, h100: Path) -> None:
    h100.write_text(_H100.replace("hgx-h100-8", "hgx-h100-9"), encoding="utf-8")
    done = run("software", str(h100))
    assert done.exit_code == 2
    assert "GC102" in done.stderr


def test_an_unknown_pool_is_a_usage_error_with_a_suggestion(run: Run, h100: Path) -> None:
    done = run("software", str(h100), "--pool", "trian")
    assert done.exit_code == 64
    assert 'did you mean "train"?' in done.stderr


def test_a_pool_without_a_spec_is_a_usage_error(run: Run) -> None:
    assert run("software", "--pool", "train").exit_code == 64


def test_lines_of_versions_keep_to_the_width_and_ascii_stays_ascii() -> None:
    text = sets_text(load_lock(), Console(width=60, unicode=False))
    versions = [line for line in text.splitlines() if line.endswith(",")]
    assert versions
    assert max(map(len, versions)) <= 60
    assert text.isascii()


def test_no_pools_is_no_text() -> None:
    assert pools_text({}, Console()) == ""


def test_validate_reads_the_lock_only_for_a_spec_that_has_something_about_software(
    shell: Callable[..., Any], spec: Path
) -> None:
    silent = shell("validate", str(spec), PYTHONPROFILEIMPORTTIME="1")
    assert silent.returncode == 0
    assert "gcluster.schemas.stack" not in silent.stderr
    spec.write_text(f'{spec.read_text()}software: {{slurm: "24.11"}}\n', encoding="utf-8")
    asking = shell("validate", str(spec), PYTHONPROFILEIMPORTTIME="1")
    assert "gcluster.schemas.stack.lock" in asking.stderr
