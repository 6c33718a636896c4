"""Examples of codes: a spec that gets the code and the same spec, corrected.

They are the golden cases of the tests, so that each one is proved: the wheel carries them, a
checkout links to them.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent.parent / "examples"


class Example(NamedTuple):
    """A wrong spec and its correction; `passes` is None where only a wrong one is shown."""

    fails: Path
    passes: Path | None


def example_of(code: str) -> Example | None:
    """Return the example of a code, or None where there is none."""
    fails = FOLDER / code / "fails" / "spec.yaml"
    passes = FOLDER / code / "passes" / "spec.yaml"
    if not fails.is_file():
        return None
    return Example(fails=fails, passes=passes if passes.is_file() else None)
