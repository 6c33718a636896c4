"""Examples of codes: a spec that gets the code and the same spec, corrected.

They are the cases `fails` and `passes` of the golden tests (schemas/examples/CODE.yaml), so that
each one is proved: the wheel carries them, a checkout links to them.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from ..decoding import decode_yaml

FOLDER = Path(__file__).parent.parent / "examples"


class ExampleSpec(msgspec.Struct, frozen=True):
    """A spec and the files that it names, by their path from the spec's folder."""

    spec: str
    files: dict[str, str] = {}


class Example(msgspec.Struct, frozen=True):
    """A wrong spec and its correction; `passes` is None where only a wrong one is shown."""

    fails: ExampleSpec
    passes: ExampleSpec | None = None


def example_of(code: str) -> Example | None:
    """Return the example of a code, or None where there is none."""
    path = FOLDER / f"{code}.yaml"
    if not path.is_file():
        return None
    cases = decode_yaml(path.read_bytes(), dict[str, ExampleSpec])
    if "fails" not in cases:
        return None
    return Example(fails=cases["fails"], passes=cases.get("passes"))
