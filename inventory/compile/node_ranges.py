"""Names and addresses of hosts folded side by side: what NodeName= and NodeAddr= can hold."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeAlias

from ...schemas.derived.hostlist import host_order

_NUMBERED = re.compile(r"(.*?)([0-9]{1,9})")
"""Letters, then the number a range can run over; more digits than that are no count."""

_Parts: TypeAlias = tuple[str, str]


def folded_pairs(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Fold (name, address) pairs into pairs of ranges that expand to them, pair by pair.

    Slurm takes the addresses of a node line in the order of its names. Hosts whose names differ
    only in the number at their end, and likewise their addresses, share a line: 1,000 hosts in
    four /24 networks take four. Whatever has no number at its end has a line of its own. Lines
    and hosts come in host order.

    Returns:
        (name range, address range), such as ("gpu[001-064]", "10.0.1.[1-64]").
    """
    lines: dict[tuple[str, str], tuple[list[str], list[str]]] = {}
    for name, address in sorted(pairs, key=lambda pair: host_order(pair[0])):
        stem, number = _parts(name)
        address_stem, address_number = _parts(address)
        if not (number and address_number):
            stem, number, address_stem, address_number = name, "", address, ""
        numbers = lines.setdefault((stem, address_stem), ([], []))
        numbers[0].append(number)
        numbers[1].append(address_number)
    return [
        (_range(stem, names), _range(address_stem, addresses))
        for (stem, address_stem), (names, addresses) in lines.items()
    ]


def _parts(text: str) -> _Parts:
    """Split "gpu001" into ("gpu", "001"); IPv6 numbers are hexadecimal and stay whole."""
    match = None if ":" in text else _NUMBERED.fullmatch(text)
    return (match[1], match[2]) if match else (text, "")


def _range(stem: str, numbers: list[str]) -> str:
    """Write numbers behind their stem, runs as first-last, in the order given."""
    if len(numbers) == 1:
        return stem + numbers[0]
    runs: list[tuple[str, str]] = []
    for number in numbers:
        if runs and number == str(int(runs[-1][1]) + 1).zfill(len(runs[-1][0])):
            runs[-1] = runs[-1][0], number
        else:
            runs.append((number, number))
    return f"{stem}[{','.join(a if a == b else f'{a}-{b}' for a, b in runs)}]"
