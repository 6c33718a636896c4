"""A policy that is not kept ends plan and up with exit code 4 and the line it is about."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

_POLICIES = """\
apiVersion: gcluster/policies/v1
policies:
  - name: size
    owner: ops@example.org
    description: Few nodes.
    applies_to: pool
    rule: pool.count.max <= {most}
    at: count
"""


@pytest.mark.parametrize("words", [("plan",), ("up", "--yes")])
def test_the_message_shows_the_place_the_policy_and_its_owner(
    run: Callable[..., Any], spec: Path, words: tuple[str, ...]
) -> None:
    spec.with_name("policies.yaml").write_text(_POLICIES.format(most=2), encoding="utf-8")
    done = run(words[0], str(spec), *words[1:])

    assert done.exit_code == 4
    assert 'policy "size" of ops@example.org: pool "gpu": Few nodes.' in done.stderr
    assert "cluster.yaml:6:48" in done.stderr
    assert "help: ask ops@example.org" in done.stderr


def test_a_policy_that_cant_be_read_is_shown_in_its_own_file(
    run: Callable[..., Any], spec: Path
) -> None:
    spec.with_name("policies.yaml").write_text(_POLICIES.format(most="x"), encoding="utf-8")
    done = run("plan", str(spec))

    assert done.exit_code == 4
    assert "GC812" in done.stderr
    assert "policies.yaml:7:29" in done.stderr
    assert "rule: pool.count.max <= x" in done.stderr
