"""What no role wrote is taken for known by its name, and nothing else is."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest
from tests.lifecycle.sample_cluster import SampleCluster

from gcluster.lifecycle.cluster.outcome import Exit, LifecycleError
from gcluster.lifecycle.status.drift import accept
from gcluster.lifecycle.status.drift.values import Drift, DriftReport

THERE = (
    Drift(plane="node", where="gpu001", kind="entry", name="/etc/sudoers.d/site", now="new here"),
    Drift(plane="node", where="gpu001", kind="file", name="/etc/hosts", now="another"),
)


@pytest.mark.parametrize("word", ["gpu002:/etc/sudoers.d/site", "gpu001:/etc/hosts", "gpu[1:x"])
def test_what_is_no_stranger_there_is_not_accepted(
    sample: SampleCluster, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    report = DriftReport(cluster="trial", drifts=THERE)
    monkeypatch.setattr(accept, "find_drift", lambda _: report)
    with pytest.raises(LifecycleError) as refused:
        accept.accept_drift(sample.open(), [word])
    assert refused.value.exit_code is Exit.USAGE
    hint = refused.value.diagnostics[0].hint
    assert hint in {"", "there are: gpu001:/etc/sudoers.d/site"}


def test_the_seals_that_have_such_items_have_it_as_it_is_now(tmp_path: Path) -> None:
    entry, seals = tmp_path / "with a space", tmp_path / "seals"
    entry.write_text("mine", encoding="utf-8")
    seals.mkdir()
    name = str(entry).replace(" ", "\\040")
    known = f"digest 0 stamp\nentry old {name}\nentry a /etc/sudoers\n"
    (seals / "base.configure").write_text(known)
    (seals / "base.install").write_text("digest 0 stamp\nfile a /etc/x\n")
    command = accept.reseal_command("entry", name)
    subprocess.run(["sh", "-ec", command], cwd=seals, check=True)
    now = hashlib.sha256(b"mine").hexdigest()
    assert (seals / "base.configure").read_text().splitlines() == [
        "digest 0 stamp", "entry a /etc/sudoers", f"entry {now} {name}",
    ]  # fmt: skip
    assert (seals / "base.install").read_text() == "digest 0 stamp\nfile a /etc/x\n"
    assert len(list(seals.iterdir())) == 2
