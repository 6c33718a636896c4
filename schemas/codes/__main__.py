"""`python -m gcluster.schemas.codes --write` registers new codes and writes their pages."""

from __future__ import annotations

import sys

from ... import __version__
from .explanations import DOCS, explanations, render
from .registered import REGISTER, with_new


def main(arguments: list[str]) -> int:
    """Print the pages, or write them and the register with --write."""
    if arguments == ["--write"]:
        REGISTER.write_text(with_new(explanations(), since=__version__), encoding="utf-8")
        for name, text in render().items():
            (DOCS / name).write_text(text, encoding="utf-8")
    else:
        sys.stdout.write("\n".join(render().values()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
