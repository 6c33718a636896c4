"""Roles on distributions that can't be booted here: each task, as it would run, is written down."""

from __future__ import annotations

import pytest
from tests.golden_files import GoldenFiles
from tests.roles import rendering


@pytest.mark.parametrize("case", rendering.NAMES)
def test_a_role_s_tasks_are_the_ones_written_down(case: str, golden: GoldenFiles) -> None:
    golden.check(rendering.CASES / f"{case}.yaml", rendering.case_file(case))


@pytest.mark.parametrize("case", rendering.NAMES)
def test_nothing_on_el_is_apt_s_and_nothing_on_debian_is_dnf_s(case: str) -> None:
    el, debian = (rendering.rendered(case, name) for name in ("el-9", "debian-13"))
    assert not any("ansible.builtin.apt" in task for tasks in el.values() for task in tasks)
    assert not any("ansible.builtin.dnf" in task for tasks in debian.values() for task in tasks)
