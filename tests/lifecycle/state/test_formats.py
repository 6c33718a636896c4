"""State of earlier formats: read as it is, brought to the newest by a run, however killed."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from tests.lifecycle.planted import spellings

from gcluster.lifecycle.cluster import open_cluster
from gcluster.lifecycle.outcome import LifecycleError
from gcluster.lifecycle.progress import silent
from gcluster.lifecycle.state import (
    Applied,
    EventLog,
    Journal,
    Ledger,
    SecretVault,
    StateStore,
    applied_number,
    keep_applied,
    newest_applied,
    upgrade,
)
from gcluster.lifecycle.state.bucket import Bucket, connect
from gcluster.lifecycle.state.formats import FORMAT_KEY, NEWEST, Format
from gcluster.lifecycle.up import up
from gcluster.schemas.spec import AgeSecrets

from .killing import Killed, KillingBucket
from .write_case import CASES, KEY


@pytest.fixture(params=sorted(path.name for path in CASES.iterdir() if path.is_dir()))
def kept(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the URL of a copy of each state that is kept."""
    monkeypatch.setenv("GCLUSTER_FIXTURE_KEY", KEY)
    shutil.copytree(CASES / request.param, tmp_path / "state")
    return f"file://{tmp_path / 'state'}"


def test_state_of_an_earlier_format_is_read_as_it_is(kept: str) -> None:
    before = _files(kept)
    store = StateStore.open(kept)
    applied = newest_applied(store)
    assert applied is not None
    assert "name: kept" in applied.spec
    assert b"name: ours" in applied.catalogs["00.yaml"]
    (run,) = Journal(EventLog(store)).runs()
    assert (run.command, run.exit_code) == ("up", 0)
    assert len(Ledger(EventLog(store)).existing()) == 3
    assert len(_vault(kept).reveal("munge")) == 1024
    assert _files(kept) == before


def test_it_is_brought_to_the_newest_format_with_all_that_it_says(kept: str) -> None:
    store = StateStore.open(kept)
    before = newest_applied(store), Journal(EventLog(store)).runs()
    found = store.read(FORMAT_KEY, Format)
    assert found is not None
    assert upgrade(store) == (None if found.version == NEWEST else (found.version, NEWEST))
    assert upgrade(store) is None
    again = StateStore.open(kept)
    assert (newest_applied(again), Journal(EventLog(again)).runs()) == before
    assert not [name for name in _files(kept) if name.startswith(("spec", "catalog", "bundle"))]


def test_the_state_of_every_released_version_is_kept() -> None:
    text = (CASES.parents[2] / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## \[([0-9.]+)\] - (\S+)$", text, re.MULTILINE)
    assert versions
    kept = {path.name for path in CASES.iterdir() if path.is_dir()}
    assert {version for version, date in versions if date != "unreleased"} <= kept


def test_killed_at_any_change_it_says_the_same_and_goes_on(kept: str) -> None:
    before = newest_applied(StateStore.open(kept))
    munge = _vault(kept).version("munge"), _vault(kept).reveal("munge")
    for changes in range(30):
        store = StateStore(KillingBucket(connect(kept), changes), url=kept)
        try:
            upgrade(store)
        except Killed:
            assert newest_applied(StateStore.open(kept)) == before
            assert (_vault(kept).version("munge"), _vault(kept).reveal("munge")) == munge
        else:
            break
    assert (_vault(kept).version("munge"), _vault(kept).reveal("munge")) == munge
    assert changes > 0 or upgrade(StateStore.open(kept)) is None
    assert newest_applied(StateStore.open(kept)) == before


def test_what_each_version_kept_of_a_secret_is_ciphertext(kept: str) -> None:
    munge = _vault(kept).reveal("munge")
    for data in _files(kept).values():
        assert not [said for said in spellings(munge) if said in data]
        assert b"AGE-SECRET-KEY" not in data


def test_bringing_secrets_to_the_newest_format_needs_no_key(
    kept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = _vault(kept).version("munge")
    monkeypatch.delenv("GCLUSTER_FIXTURE_KEY")
    upgrade(StateStore.open(kept))
    assert _vault(kept).version("munge") == before
    assert not [name for name in _files(kept) if name.endswith((".age", "recipient"))]


def test_up_goes_on_with_a_cluster_of_an_earlier_format(kept: str, kept_spec: Path) -> None:
    assert up(open_cluster(str(kept_spec)), silent, confirm=lambda _: True).exit_code == 0

    assert upgrade(StateStore.open(kept)) is None
    assert open_cluster(str(kept_spec), running=True).spec.name == "kept"


def test_what_was_applied_is_never_changed_and_the_newest_counts(store: StateStore) -> None:
    assert newest_applied(store) is None
    for text in ("one", "two", "two"):
        keep_applied(store, Applied(spec=text))
    assert applied_number(store) == 2
    assert newest_applied(store) == Applied(spec="two")
    assert b"one" in (store.get("applied/000001.json") or b"")


def test_two_who_apply_at_once_cannot_both_be_the_newest(bucket: Bucket) -> None:
    class Overtaken(StateStore):
        def put_new(self, key: str, data: bytes) -> None:
            if key.startswith("applied/"):
                super().put_new(key, data.replace(b"mine", b"another"))
            super().put_new(key, data)

    with pytest.raises(LifecycleError, match="another run applied a spec"):
        keep_applied(Overtaken(bucket, url="test"), Applied(spec="mine"))
    assert newest_applied(StateStore(bucket, url="test")) == Applied(spec="another")


def _vault(url: str) -> SecretVault:
    store, secrets = StateStore.open(url), AgeSecrets(key="env:GCLUSTER_FIXTURE_KEY")
    return SecretVault.open(store, secrets, store.identify("kept").id, Path("/nowhere"))


def _files(url: str) -> dict[str, bytes]:
    root = Path(url.removeprefix("file://"))
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}
