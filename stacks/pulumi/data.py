"""The data that stands beside a cloud's code, each figure with its source: stacks/CLOUD/data."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from ...schemas.structure.decoding import decode_yaml

_STACKS = Path(__file__).parents[1]
T = TypeVar("T")


def data_file(cloud: str, what: str) -> Path:
    """Return the file of a cloud that says something, which may be missing.

    Args:
        cloud: its folder of stacks.
        what: addresses, errors, facts, lists, names, permissions or timeouts.
    """
    return _STACKS / cloud / "data" / f"{what}.yaml"


def data_files(what: str) -> list[Path]:
    """Return the files of all clouds that say something; `what` as of `data_file`."""
    return sorted(_STACKS.glob(f"*/data/{what}.yaml"))


def read_data(cloud: str, what: str, kind: type[T]) -> T:
    """Return what a cloud's file says; raises FileNotFoundError. Arguments as of `data_file`."""
    return decode_yaml(data_file(cloud, what).read_bytes(), kind)
