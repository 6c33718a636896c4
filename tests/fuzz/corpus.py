"""First inputs of the fuzz target: the examples and golden cases. `python corpus.py FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path

import yaml


def write_corpus(folder: Path) -> int:
    """Copy the specs into a folder; return how many."""
    root = Path(__file__).parents[2]
    specs = [path.read_bytes() for path in sorted(root.glob("examples/*.yaml"))]
    for path in sorted(root.glob("tests/cases/validate/*.yaml")):
        cases = yaml.load(path.read_bytes(), Loader=yaml.CSafeLoader)  # a safe loader
        specs += [case["spec"].encode() for case in cases.values()]
    folder.mkdir(parents=True, exist_ok=True)
    for number, spec in enumerate(specs):
        (folder / f"{number:04d}.yaml").write_bytes(spec)
    return len(specs)


if __name__ == "__main__":
    write_corpus(Path(sys.argv[1]))
