"""A coverage-guided fuzz target (atheris) for everything that reads a spec: bytes in, no traceback.

`make fuzz` runs it for a while; arguments are libFuzzer's. Each input is loaded, its findings are
drawn and their patches applied, as `gcluster validate --fix` would.
"""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["gcluster"]):
    from gcluster.cli.console import Console
    from gcluster.cli.render.diagnostics import diagnostics_text
    from gcluster.schemas.checks import CHECKS as _CHECKS  # noqa: F401  # all, before any input
    from gcluster.schemas.load import load_text
    from gcluster.schemas.structure import errors as _errors  # noqa: F401  # as above
    from gcluster.schemas.structure.fix.apply import fixed_text

_PAPER = Console(width=80)


def one_input(content: bytes) -> None:
    """Load, draw and fix one input; raises where something is wrong with us."""
    loaded = load_text(content, file="fuzzed.yaml")
    if (loaded.spec is None) != any(found.is_error for found in loaded.diagnostics):
        raise AssertionError("a spec is there exactly when no finding is an error")
    diagnostics_text(loaded.diagnostics, _PAPER, {loaded.file: loaded.text})
    fixed = fixed_text(loaded.text, loaded.diagnostics)
    if fixed.applied and load_text(fixed.text).document is None and loaded.document is not None:
        raise AssertionError("a fix made the text unreadable")


def main() -> None:
    """Run until libFuzzer's arguments say to stop."""
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
