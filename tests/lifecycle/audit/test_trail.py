"""Every change is recorded: who, what, what for, how it ended; and nothing secret anywhere."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from tests.lifecycle.collector import listening
from tests.lifecycle.sample_cluster import SampleCluster

from gcluster.lifecycle.cluster.outcome import LifecycleError
from gcluster.lifecycle.state.audit.trail import audit_lines


def _commit(folder: Path) -> str:
    """Put a folder under git; return the commit."""
    who = ["-c", "user.name=ada", "-c", "user.email=ada@example.edu"]
    for words in (["init", "-q"], ["add", "cluster.yaml"], [*who, "commit", "-q", "-m", "one"]):
        subprocess.run(["git", "-C", folder, *words], check=True)
    done = subprocess.run(
        ["git", "-C", folder, "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def test_every_event_is_a_line_with_who_what_why_and_the_result(sample: SampleCluster) -> None:
    commit = _commit(sample.path.parent)
    sample.up()
    sample.write(count=2)
    sample.up(allow="pool:gpu")
    lines = [json.loads(line) for line in audit_lines(sample.open())]
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
    assert {line["cluster"] for line in lines} == {"trial"}
    assert all("@" in line["who"] for line in lines)
    runs = list(dict.fromkeys(line["run"] for line in lines if line["run"]))
    first, second = ([line for line in lines if line["run"] == run] for run in runs)
    assert {line["why"] for line in first} == {commit}
    assert {line["why"] for line in second} == {f"{commit}+changes"}
    assert [line["result"] for line in first if line["result"]] == ["ok"]
    assert first[0]["what"] == "RunStarted"
    assert first[-1]["what"] == "RunFinished"
    deleted = [line["data"] for line in second if line["what"] == "ResourcesDeleted"]
    assert deleted[0]["deleted"][0]["resource_key"] == "node/gpu003"


def test_a_file_gets_the_lines_as_they_happen(
    sample: SampleCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "audit.jsonl"
    monkeypatch.setenv("GCLUSTER_AUDIT", str(file))
    sample.up()
    sample.down()
    written = [json.loads(line) for line in file.read_text().splitlines()]
    kept = [json.loads(line) for line in audit_lines(sample.open())]
    assert written == [line for line in kept if line["run"]]
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_file_that_cannot_be_written_stops_a_run_before_it_changes_anything(
    sample: SampleCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GCLUSTER_AUDIT", "/nowhere/audit.jsonl")
    with pytest.raises(LifecycleError) as caught:
        sample.up()
    assert caught.value.diagnostics[0].code == "GC1150"
    assert sample.open().ledger.existing() == ()
    monkeypatch.delenv("GCLUSTER_AUDIT")
    sample.up()


def test_a_collector_gets_each_run_as_a_span_with_its_events(
    sample: SampleCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    with listening() as (collector, url):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        sample.up()
        sample.down()
    assert [span.name for span in collector.spans] == ["gcluster up", "gcluster down"]
    up = collector.spans[0]
    answer = {a.key: a.value.string_value for a in up.attributes}
    assert answer["gcluster.cluster"] == "trial"
    assert answer["gcluster.result"] == "ok"
    kinds = [event.name for event in up.events]
    assert (kinds[0], kinds[-1]) == ("RunStarted", "RunFinished")
    assert "ResourcesCreated" in kinds
