"""Fixing: all that can be fixed at once, and nothing else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gcluster.schemas.load import load_text
from gcluster.schemas.structure.fix.apply import apply_fixes

SPEC = """\
# A comment that stays.
apiVersion: gcluster/v1
name: demo
sites: {lab: {provider: simulated}}   # and this one
pools:
  head: {site: lab, role: controller}
  gpu: {site: lab, machine: sim.h100x8, count: 4}
scheduler: {type: slurm}
"""


def test_every_mistake_with_one_right_answer_is_fixed_and_comments_stay() -> None:
    wrong = SPEC.replace("machine:", "machin:").replace("count:", "cuont:").replace("type", "typ")
    fixed = apply_fixes(load_text(wrong))
    assert fixed.after.text == SPEC
    assert fixed.after.spec is not None
    assert fixed.is_changed


def test_a_mistake_that_shows_only_after_another_is_fixed_too() -> None:
    wrong = SPEC.replace("machine: sim.h100x8", "machin: sim.h100x9")
    fixed = apply_fixes(load_text(wrong))
    assert len(fixed.applied) == 2
    assert fixed.after.text == SPEC


def test_what_no_machine_can_have_is_left() -> None:
    wrong = SPEC.replace("count: 4", "count: many")
    fixed = apply_fixes(load_text(wrong))
    assert not fixed.is_changed
    assert fixed.after.diagnostics == fixed.before.diagnostics


@given(st.text())
def test_any_text_is_fixed_without_raising(text: str) -> None:
    fixed = apply_fixes(load_text(text))
    assert fixed.is_changed == (fixed.before.text != fixed.after.text)
