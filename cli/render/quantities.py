"""Numbers with their units as people read them: time, usd_text, sizes, bandwidth, counts."""

from __future__ import annotations

from collections.abc import Mapping

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_TENTHS_BELOW = 9.95
_BINARY = 1024
_DECIMAL = 1000


def duration(seconds: float) -> str:
    """Return "0.1 s", "21 s", "2 min 5 s", "3 h 20 min", "2 d 4 h"."""
    if seconds < _TENTHS_BELOW:
        return f"{max(seconds, 0.0):.1f} s"
    whole = round(seconds)
    if whole < 2 * _MINUTE:
        return f"{whole} s"
    if whole < 2 * _HOUR:
        return _two(whole // _MINUTE, "min", whole % _MINUTE, "s")
    if whole < 2 * _DAY:
        return _two(whole // _HOUR, "h", whole % _HOUR // _MINUTE, "min")
    return _two(whole // _DAY, "d", whole % _DAY // _HOUR, "h")


def _two(many: int, unit: str, few: int, part: str) -> str:
    return f"{many} {unit} {few} {part}" if few else f"{many} {unit}"


def microseconds(value: float) -> str:
    """Return a time given in microseconds: "38.1 us", "1.2 ms", "2.5 s"."""
    if value < _DECIMAL:
        return f"{value:.1f} us"
    if value < _DECIMAL * _DECIMAL:
        return f"{value / _DECIMAL:.1f} ms"
    return duration(value / _DECIMAL / _DECIMAL)


def usd_per_hour(value: float | None) -> str:
    """Return "$1,200.00/h"; an unknown price is said to be unknown, never 0."""
    return "price unknown" if value is None else f"${value:,.2f}/h"


def size(value: float) -> str:
    """Return a message size, given in bytes, in binary units: "8 B", "64 KiB", "1.5 GiB"."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < _BINARY:
            return _rounded(value, unit)
        value /= _BINARY
    return _rounded(value, "TiB")


def _rounded(value: float, unit: str) -> str:
    return f"{int(value)} {unit}" if value == int(value) else f"{value:.1f} {unit}"


def bandwidth(gigabytes_per_second: float) -> str:
    """Return "1.88 GB/s", "480 GB/s", "573 MB/s", "90.9 B/s": decimal units, three figures."""
    value = gigabytes_per_second * 1e9
    for unit in ("B/s", "kB/s", "MB/s"):
        if value < _DECIMAL:
            return f"{value:.3g} {unit}"
        value /= _DECIMAL
    return f"{value:.3g} GB/s" if value < _DECIMAL else f"{value:,.0f} GB/s"


def plural(count: int, noun: str) -> str:
    """Return "1 node", "2 nodes", "2 copies"."""
    if count == 1:
        return f"1 {noun}"
    ending = noun[-2:]
    is_ies = ending.endswith("y") and ending[0] not in "aeiou"
    return f"{count:,} {noun[:-1]}ies" if is_ies else f"{count:,} {noun}s"


def counts(kinds: Mapping[str, int]) -> str:
    """Return "5 nodes, 1 network, 1 key"; the most numerous first."""
    ordered = sorted(kinds.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(plural(count, kind) for kind, count in ordered)
