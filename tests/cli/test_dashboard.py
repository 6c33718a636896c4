"""`gcluster dashboard`: how long its link is good for, and that the command ends with it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from bench.simulated.dashboard import simulated

from gcluster.cli.inspect import dashboard


@pytest.mark.parametrize(
    ("lasts", "why"), [("0s", "good for no time"), ("soon", "--lasts soon: "), ("-1h", "--lasts")]
)
def test_a_link_of_no_time_is_wrong_usage(run: Callable[..., Any], lasts: str, why: str) -> None:
    done = run("dashboard", "lab", f"--lasts={lasts}")

    assert done.exit_code == 64
    assert "GC1194" in done.stderr
    assert why in done.stderr


def test_the_command_ends_with_its_link_and_shows_for_how_long_it_was_good(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = SimpleNamespace(name="lab", workdir=None)
    monkeypatch.setattr(dashboard, "open_cluster", lambda *_, **__: opened)
    monkeypatch.setattr(dashboard, "SshSession", lambda _: nullcontext())
    monkeypatch.setattr(dashboard, "metrics_of", lambda *_: simulated(3))
    monkeypatch.setattr(dashboard, "is_of_pods", lambda _: False)

    done = run("dashboard", "lab", "--lasts", "1s")

    assert done.exit_code == 0
    assert "http://127.0.0.1:" in done.stdout
    assert "for 1s" in done.stdout
    assert "The link has ended after 1s" in done.stdout
