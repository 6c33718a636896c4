"""First inputs of the fuzz target: the examples and golden cases. `python corpus.py FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path


def write_corpus(folder: Path) -> int:
    """Copy the specs into a folder; return how many."""
    root = Path(__file__).parents[2]
    specs = [*root.glob("examples/*.yaml"), *root.glob("tests/cases/validate/*/*/spec.yaml")]
    folder.mkdir(parents=True, exist_ok=True)
    for number, spec in enumerate(sorted(specs)):
        (folder / f"{number:04d}.yaml").write_bytes(spec.read_bytes())
    return len(specs)


if __name__ == "__main__":
    write_corpus(Path(sys.argv[1]))
