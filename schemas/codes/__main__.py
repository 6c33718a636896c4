"""`python -m gcluster.schemas.codes --write` registers new codes and renews docs/diagnostics.md."""

from __future__ import annotations

import sys

from ... import __version__
from .explanations import PAGE, explanations, render
from .registered import REGISTER, with_new


def main(arguments: list[str]) -> int:
    """Print the page, or write it and the register with --write."""
    if arguments == ["--write"]:
        REGISTER.write_text(with_new(explanations(), since=__version__), encoding="utf-8")
        PAGE.write_text(render(), encoding="utf-8")
    else:
        sys.stdout.write(render())
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
