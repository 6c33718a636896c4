"""Faults of elastic nodes: none unless a test sets them, with a message where they come from."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from gcluster.stacks.local.faults import NONE, VARIABLE, injected
from gcluster.stacks.provider import ProviderError


@pytest.fixture
def inject(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "faults.json"
    monkeypatch.setenv(VARIABLE, str(path))
    return path


def test_nothing_goes_wrong_without_injected_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)

    assert injected() is NONE
    assert NONE.init_words("spill001") == ()
    NONE.meet("spill001")


def test_nothing_goes_wrong_before_the_file_is_there(inject: Path) -> None:
    assert not inject.exists()
    assert injected() is NONE


def test_capacity_is_refused_for_the_named_nodes_alone(inject: Path) -> None:
    inject.write_text(json.dumps({"refuse": "spill[001-002]"}))

    with pytest.raises(ProviderError, match="no capacity for spill002"):
        injected().meet("spill002")
    injected().meet("spill003")


def test_a_unit_that_a_node_boots_without_is_masked_by_its_init(inject: Path) -> None:
    inject.write_text(json.dumps({"mask": {"ssh.service": "mute[001-002]"}}))

    assert injected().init_words("mute001") == ("systemd.mask=ssh.service",)
    assert injected().init_words("spill001") == ()


def test_a_file_of_another_form_fails_instead_of_meaning_nothing(inject: Path) -> None:
    inject.write_text(json.dumps({"refused": "spill001"}))

    with pytest.raises(msgspec.ValidationError, match="refused"):
        injected()
