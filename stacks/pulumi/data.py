"""The data files of a cloud, each figure with its source: stacks/CLOUD/data."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from ...schemas.structure.decoding import decode_yaml

_STACKS = Path(__file__).parents[1]
T = TypeVar("T")


def data_file(cloud: str, what: str) -> Path:
    """Return the path of a cloud's data file, which may be missing.

    Args:
        cloud: its folder of stacks.
        what: addresses, errors, facts, lists, names, permissions or timeouts.
    """
    return _STACKS / cloud / "data" / f"{what}.yaml"


def data_files(what: str) -> list[Path]:
    """Return a data file of all clouds; `what` as of `data_file`."""
    return sorted(_STACKS.glob(f"*/data/{what}.yaml"))


def read_data(cloud: str, what: str, kind: type[T]) -> T:
    """Return the content of a cloud's data file, as of `data_file`; raises FileNotFoundError."""
    return decode_yaml(data_file(cloud, what).read_bytes(), kind)
