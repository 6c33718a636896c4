"""Roles on distributions that can't be booted here: each task, as it would run, is written down."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import rendering

sys.path.pop(0)


@pytest.mark.parametrize("distribution", rendering.FACTS)
@pytest.mark.parametrize("case", rendering.NAMES)
def test_a_role_s_tasks_are_the_ones_written_down(case: str, distribution: str) -> None:
    expected = (rendering.CASES / case / f"{distribution}.yaml").read_text()
    assert rendering.rendered(case, distribution) == expected


@pytest.mark.parametrize("case", rendering.NAMES)
def test_nothing_on_el_is_apt_s_and_nothing_on_debian_is_dnf_s(case: str) -> None:
    assert "ansible.builtin.apt:" not in rendering.rendered(case, "el-9")
    assert "ansible.builtin.dnf:" not in rendering.rendered(case, "debian-13")
