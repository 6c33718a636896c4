"""Mending: all that can be mended at once, and nothing else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gcluster.schemas.fix.apply import mend
from gcluster.schemas.load import load_text

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


def test_every_mistake_with_one_right_answer_is_mended_and_comments_stay() -> None:
    wrong = SPEC.replace("machine:", "machin:").replace("count:", "cuont:").replace("type", "typ")
    mended = mend(load_text(wrong))
    assert mended.after.text == SPEC
    assert mended.after.spec is not None
    assert mended.is_changed


def test_a_mistake_that_shows_only_after_another_is_mended_too() -> None:
    wrong = SPEC.replace("machine: sim.h100x8", "machin: sim.h100x9")
    mended = mend(load_text(wrong))
    assert len(mended.applied) == 2
    assert mended.after.text == SPEC


def test_what_no_machine_can_know_is_left() -> None:
    wrong = SPEC.replace("count: 4", "count: many")
    mended = mend(load_text(wrong))
    assert not mended.is_changed
    assert mended.after.diagnostics == mended.before.diagnostics


@given(st.text())
def test_any_text_is_mended_without_raising(text: str) -> None:
    mended = mend(load_text(text))
    assert mended.is_changed == (mended.before.text != mended.after.text)
