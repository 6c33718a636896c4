"""Quantities with units: sizes, durations, bandwidths."""

import re
from collections.abc import Iterable
from typing import Any, ClassVar, Self

_MOST = 1e15
"""Numbers of a quantity have at most 15 digits before the point, and 15 after it."""
_NUMBER_AND_WORD = r"(?a:([0-9]{1,15}(?:\.[0-9]{1,15})?)\s*([A-Za-z/%]+))"
_KUBERNETES_UNITS = ("Ki", "Mi", "Gi", "Ti")
_SLURM_TIME = r"(?a:(?:(\d{1,4})-)?(\d{1,4})(?::(\d{1,2}))?(?::(\d{1,2}))?)"
"""days-hours[:minutes[:seconds]], hours:minutes:seconds, minutes:seconds (slurm.conf(5), "MaxTime";
sbatch(1), "--time"); minutes alone is a number without a unit, which isn't guessed at."""


class Quantity:
    """A number with a unit; compares and hashes by value, prints as the shortest exact form."""

    __slots__ = ("value", "written")
    unit_factors: ClassVar[dict[str, float]]
    pattern: ClassVar[str]
    examples: ClassVar[tuple[str, ...]]

    def __init__(self, value: float, written: str = "") -> None:
        """Hold `value` in the base unit of the subclass, and how it was written if it was."""
        self.value = value
        self.written = written

    @classmethod
    def parse(cls, text: object) -> Self:
        """Read "12000 GiB"; raises ValueError that says what was expected."""
        match = (
            re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]{1,15})?) ?([A-Za-z/%]+)", text)
            if isinstance(text, str)
            else None
        )
        if match is None or match[2] not in cls.unit_factors:
            wanted = " or ".join(f'"{example}"' for example in cls.examples)
            raise ValueError(f"expected a quantity with its unit, such as {wanted}")
        return cls(
            float(match[1]) * cls.unit_factors[match[2]], f"{match[1]}{cls._separator}{match[2]}"
        )

    @classmethod
    def rewritten(cls, text: str) -> str | None:
        """Return the one form of ours that says what another tool's form says; None: there is none.

        Units in another case are understood where one unit alone has their letters: `Gib`, `tib/s`.
        """
        match = re.fullmatch(_NUMBER_AND_WORD, text.strip())
        if match is None:
            return None
        same = [unit for unit in cls.unit_factors if unit.casefold() == match[2].casefold()]
        return f"{match[1]}{cls._separator}{same[0]}" if len(same) == 1 else None

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """Return the JSON Schema of the written form."""
        units = "|".join(re.escape(unit) for unit in cls.unit_factors)
        return {
            "type": "string",
            "pattern": rf"^[0-9]{{1,15}}(\.[0-9]{{1,15}})? ?({units})$(?!\n)",
            "examples": list(cls.examples),
        }

    def __str__(self) -> str:
        """Print with the largest unit that keeps the number whole, else as it was written."""
        best, best_factor = "", 0.0
        for unit, factor in self.unit_factors.items():
            number = self.value / factor
            fits = number.is_integer() and number < _MOST and number * factor == self.value
            if fits and factor > best_factor:
                best, best_factor = unit, factor
        if best:
            return f"{int(self.value / best_factor)}{self._separator}{best}"
        if self.written:
            return self.written
        unit, factor = min(self.unit_factors.items(), key=lambda item: item[1])
        return f"{self.value / factor!r}{self._separator}{unit}"

    _separator: ClassVar[str] = " "

    def __repr__(self) -> str:
        """Name the class and the written form."""
        return f"{type(self).__name__}({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        """Equal when of the same kind and value."""
        return type(other) is type(self) and other.value == self.value

    def __hash__(self) -> int:
        """Hash by kind and value."""
        return hash((type(self), self.value))


class ByteSize(Quantity):
    """A size; `value` is in bytes."""

    __slots__ = ()
    unit_factors: ClassVar[dict[str, float]] = {
        "B": 1,
        "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
        "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40,
    }  # fmt: skip
    examples: ClassVar[tuple[str, ...]] = ("64 MiB", "12000 GiB")

    @classmethod
    def rewritten(cls, text: str) -> str | None:
        """Return the form of ours; `Gi` is Kubernetes' way to write GiB (resource.Quantity).

        `G` alone stays a person's: Slurm means GiB by it, and Kubernetes GB.
        """
        written = text.strip()
        return super().rewritten(f"{written}B" if written.endswith(_KUBERNETES_UNITS) else written)


class Duration(Quantity):
    """A length of time; `value` is in seconds."""

    __slots__ = ()
    unit_factors: ClassVar[dict[str, float]] = {"s": 1, "m": 60, "h": 3600, "d": 86400}
    examples: ClassVar[tuple[str, ...]] = ("30m", "7d")
    _separator: ClassVar[str] = ""

    @classmethod
    def rewritten(cls, text: str) -> str | None:
        """Return the form of ours; `2-00:00:00` and `12:00:00` are Slurm's."""
        slurms = cls.of_slurm(text)
        return super().rewritten(text) if slurms is None else str(slurms)

    @classmethod
    def of_slurm(cls, text: str) -> Self | None:
        """Return a time as Slurm writes it: "2-00:00:00", "12:00:00", "30:00"; None: it is none."""
        match = re.fullmatch(_SLURM_TIME, text.strip())
        if match is None or not (match[1] or match[3]):
            return None
        days, *rest = (int(part or 0) for part in match.groups())
        if not match[1] and match[4] is None:
            rest = [0, *rest[:2]]  # minutes:seconds
        hours, minutes, seconds = rest
        return cls(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


class Interval(Duration):
    """A length of time above 0, or "auto"; `value` is in seconds, 0 for auto."""

    __slots__ = ()
    examples: ClassVar[tuple[str, ...]] = ("auto", "15m")

    @classmethod
    def parse(cls, text: object) -> Self:
        """Read "auto" or "15m"; raises ValueError, also for 0."""
        if text == "auto":
            return cls(0)
        interval = super().parse(text)
        if interval.value == 0:
            raise ValueError("an interval is above 0")
        return interval

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """Return the JSON Schema of the written form."""
        schema = super().json_schema()
        number = schema["pattern"].removeprefix("^").removesuffix(r"$(?!\n)")
        return {**schema, "pattern": rf"^(auto|(?=.*[1-9]){number})$(?!\n)"}

    @property
    def is_auto(self) -> bool:
        """Whether it is worked out."""
        return self.value == 0

    def __str__(self) -> str:
        """Print as written."""
        return "auto" if self.is_auto else super().__str__()


class BusBandwidth(Quantity):
    """A collective's bus bandwidth; `value` is in bytes per second."""

    __slots__ = ()
    unit_factors: ClassVar[dict[str, float]] = {"MB/s": 1e6, "GB/s": 1e9}
    examples: ClassVar[tuple[str, ...]] = ("400 GB/s",)


class Throughput(Quantity):
    """File-system throughput for each TiB of capacity; `value` is in bytes per second per TiB."""

    __slots__ = ()
    unit_factors: ClassVar[dict[str, float]] = {"MB/s/TiB": 1e6, "GB/s/TiB": 1e9}
    examples: ClassVar[tuple[str, ...]] = ("250 MB/s/TiB",)


class DataRate(Quantity):
    """What a file system reads and writes in a time; `value` is in bytes per second."""

    __slots__ = ()
    unit_factors: ClassVar[dict[str, float]] = {
        "MB/s": 1e6, "GB/s": 1e9, "MiB/s": 2.0**20, "GiB/s": 2.0**30,
    }  # fmt: skip
    examples: ClassVar[tuple[str, ...]] = ("256 MiB/s", "1280 MB/s")


class Percent(Quantity):
    """A share; `value` is 0.4 for 40%."""

    __slots__ = ()
    unit_factors: ClassVar[dict[str, float]] = {"%": 0.01}
    examples: ClassVar[tuple[str, ...]] = ("40%",)
    _separator: ClassVar[str] = ""


class BandwidthFloor(BusBandwidth):
    """A bus bandwidth to reach, "auto" or "none"; `value` is in bytes per second, 0 for auto."""

    __slots__ = ()
    examples: ClassVar[tuple[str, ...]] = ("auto", "none", "400 GB/s")

    @classmethod
    def parse(cls, text: object) -> Self:
        """Read "auto", "none" or "400 GB/s"; raises ValueError, also for a floor of 0."""
        if text in {"auto", "none"}:
            return cls(0 if text == "auto" else -1)
        floor = super().parse(text)
        if floor.value == 0:
            raise ValueError("a floor is above 0")
        return floor

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """Return the JSON Schema of the written form."""
        schema = super().json_schema()
        number = schema["pattern"].removeprefix("^").removesuffix(r"$(?!\n)")
        return {**schema, "pattern": rf"^(auto|none|(?=.*[1-9]){number})$(?!\n)"}

    @property
    def is_auto(self) -> bool:
        """Whether the fabric class says it."""
        return self.value == 0

    @property
    def is_none(self) -> bool:
        """Whether nothing is requested."""
        return self.value < 0

    def __str__(self) -> str:
        """Print as written."""
        if self.is_none:
            return "none"
        return "auto" if self.is_auto else super().__str__()


def strictest(limits: Iterable[Duration | None]) -> Duration | None:
    """Return what holds where each of some limits does."""
    known = (limit for limit in limits if limit is not None)
    return min(known, key=lambda limit: limit.value, default=None)


def most_generous(limits: Iterable[Duration | None]) -> Duration | None:
    """Return what holds where any of some limits may be chosen; None too where there are none."""
    known: list[Duration] = []
    for limit in limits:
        if limit is None:
            return None
        known.append(limit)
    return max(known, key=lambda limit: limit.value, default=None)


def decode_quantity(kind: type, value: Any) -> Any:
    """Read a Quantity for msgspec.

    Raises:
        ValueError: the text is no quantity of this kind.
        NotImplementedError: the type is none of ours.
    """
    if issubclass(kind, Quantity):
        return kind.parse(value)
    raise NotImplementedError(kind)
