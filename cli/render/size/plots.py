"""Plots as shapes of an SVG drawing: stacked bars, curves, and bars that go left and right of zero.

Coordinates are those of a drawing WIDTH wide; its height follows from what is shown. A plot's
values are also its table (`Plot.table`), for readers who don't see the drawing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, Protocol, TypeAlias

import msgspec

WIDTH = 720.0
_LEFT, _RIGHT, _TOP = 190.0, 110.0, 8.0
_CURVE_LEFT, _CURVE_HEIGHT, _CURVE_BOTTOM = 64.0, 230.0, 44.0
_ROW, _BAR = 30.0, 18.0
_TICKS = 5
_TOTAL = 58.0
"""Room that the text behind a bar takes."""
Anchor: TypeAlias = Literal["start", "middle", "end"]
Show: TypeAlias = Callable[[float], str]


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """One element: a rectangle, a line, a curve or a text."""

    kind: Literal["rect", "line", "curve", "text"]
    x: float = 0.0
    y: float = 0.0
    x2: float = 0.0
    """Of a line; of a rectangle its width."""
    y2: float = 0.0
    """Of a line; of a rectangle its height."""
    points: str = ""
    text: str = ""
    """What is written, or the title of another shape."""
    anchor: Anchor = "start"
    style: str = ""
    """Class of the style sheet."""


class Drawing(msgspec.Struct, frozen=True, kw_only=True):
    """One SVG image."""

    height: float
    label: str
    """What a screen reader says of it."""
    shapes: list[Shape]
    key: list[str]
    """Names of the series, in the order of their colours."""


class Cells(msgspec.Struct, frozen=True):
    """A table."""

    titles: list[str]
    rows: list[list[str]]
    words: tuple[int, ...] = ()
    """Columns of text, which begin where the column begins and may take several lines."""


class Plot(Protocol):
    """What can be drawn, and written as a table."""

    def drawing(self) -> Drawing:
        """Return the image."""

    def table(self) -> Cells:
        """Return its values."""


class Stacks(msgspec.Struct, frozen=True, kw_only=True):
    """Horizontal bars of several parts, next to a limit."""

    label: str
    names: list[str]
    """Of the parts."""
    rows: list[tuple[str, list[float]]]
    show: Show
    limit: tuple[str, float] | None = None

    def drawing(self) -> Drawing:
        """Return a bar for each row; the limit is a line through all of them."""
        most = max([sum(parts) for _, parts in self.rows] + [self.limit[1] if self.limit else 0.0])
        scale = (WIDTH - _LEFT - _RIGHT) / most if most else 0.0
        shapes: list[Shape] = []
        for number, (name, parts) in enumerate(self.rows):
            y = _TOP + number * _ROW
            shapes.append(_text(_LEFT - 8, y + 13, name, "end"))
            x = _LEFT
            for part, value in enumerate(parts):
                if value:
                    about = f"{name}: {self.names[part]} {self.show(value)}"
                    shapes.append(_rect(x, y, value * scale, about, f"s{part}"))
                x += value * scale
            end = x + 6
            if self.limit is not None and x <= _LEFT + self.limit[1] * scale < x + _TOTAL:
                end = _LEFT + self.limit[1] * scale + 6  # not across the line
            shapes.append(_text(end, y + 13, self.show(sum(parts))))
        height = _TOP + len(self.rows) * _ROW
        if self.limit is not None:
            x = _LEFT + self.limit[1] * scale
            shapes.append(_line(x, 0, x, height, "limit"))
            about = f"{self.limit[0]} {self.show(self.limit[1])}"
            shapes.append(_text(x, height + 12, about, "middle", "axis"))
            height += 18
        return Drawing(height=height, label=self.label, shapes=shapes, key=self.names)

    def table(self) -> Cells:
        """Return a row for each bar."""
        rows = [
            [name, *map(self.show, parts), *([self.show(sum(parts))] if len(parts) > 1 else [])]
            for name, parts in self.rows
        ]
        whole = ["together"] if len(self.names) > 1 else []
        return Cells(["", *self.names, *whole], rows)


class Curves(msgspec.Struct, frozen=True, kw_only=True):
    """Values over values, one curve for each series."""

    label: str
    x_name: str
    y_name: str
    series: list[tuple[str, list[tuple[float, float]]]]
    show_x: Show
    show_y: Show
    limit: tuple[str, float] | None = None
    """A value of y."""

    def drawing(self) -> Drawing:
        """Return the curves between axes that begin at zero, each with its name at its end."""
        points = [point for _, found in self.series for point in found]
        x_ticks = ticks(max((x for x, _ in points), default=1.0))
        limit = self.limit[1] if self.limit else 0.0
        y_ticks = ticks(max([y for _, y in points] + [limit]))
        right, bottom = WIDTH - _RIGHT - 30, _TOP + _CURVE_HEIGHT

        def at(x: float, y: float) -> tuple[float, float]:
            across = (right - _CURVE_LEFT) * x / x_ticks[-1]
            return _CURVE_LEFT + across, bottom - _CURVE_HEIGHT * y / y_ticks[-1]

        shapes: list[Shape] = []
        for value in y_ticks:
            _, y = at(0, value)
            shapes.append(_line(_CURVE_LEFT, y, right, y, "grid"))
            shapes.append(_text(_CURVE_LEFT - 6, y + 4, self.show_y(value), "end", "axis"))
        for value in x_ticks:
            x, _ = at(value, 0)
            shapes.append(_text(x, bottom + 16, self.show_x(value), "middle", "axis"))
        middle = (_CURVE_LEFT + right) / 2
        shapes.append(_text(middle, bottom + 36, f"{self.x_name} →", "middle", "axis"))
        if self.limit is not None:
            _, y = at(0, self.limit[1])
            shapes.append(_line(_CURVE_LEFT, y, right, y, "limit"))
            shapes.append(_text(right, y - 5, self.limit[0], "end", "axis"))
        ends = _apart([at(*found[-1])[1] for _, found in self.series])
        for number, (name, found) in enumerate(self.series):
            drawn = [at(x, y) for x, y in found]
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in drawn)
            style = f"c{number}"
            shapes.append(Shape(kind="curve", points=path, text=name, style=style))
            shapes.append(_text(drawn[-1][0] + 8, ends[number] + 4, name))
        return Drawing(
            height=bottom + _CURVE_BOTTOM,
            label=f"{self.label}: {self.y_name} over {self.x_name}",
            shapes=shapes,
            key=[],
        )

    def table(self) -> Cells:
        """Return a row for each x, and a column for each curve."""
        every = sorted({x for _, found in self.series for x, _ in found})
        known = [dict(found) for _, found in self.series]
        rows = [
            [self.show_x(x), *(self.show_y(each[x]) if x in each else "" for each in known)]
            for x in every
        ]
        return Cells([self.x_name, *(name for name, _ in self.series)], rows)


class Swing(msgspec.Struct, frozen=True, kw_only=True):
    """How far one input moves a result, both ways."""

    name: str
    low: str
    """The input's least, as text."""
    high: str
    at_low: float
    """Change of the result there."""
    at_high: float


class Tornado(msgspec.Struct, frozen=True, kw_only=True):
    """Bars left and right of zero, the longest above."""

    label: str
    result: str
    """What changes."""
    swings: list[Swing]
    show: Show

    def drawing(self) -> Drawing:
        """Return a bar for each input."""
        most = max((max(abs(s.at_low), abs(s.at_high)) for s in self.swings), default=0.0)
        right = WIDTH - 90
        zero = (_LEFT + 70 + right) / 2
        scale = (right - zero) / most if most else 0.0
        shapes: list[Shape] = []
        for number, each in enumerate(self.swings):
            y = _TOP + number * _ROW
            shapes.append(_text(_LEFT - 8, y + 13, each.name, "end"))
            ends = ((each.low, each.at_low, "s0"), (each.high, each.at_high, "s1"))
            for end, change, style in ends:
                x, width = zero + min(0.0, change * scale), abs(change * scale)
                about = f"{each.name} {end}: {self.show(change)} {self.result}"
                shapes.append(_rect(x, y, width, about, style))
            low, high = sorted(ends, key=lambda end: end[1])[:2]
            shapes.append(_text(zero + min(0.0, low[1] * scale) - 5, y + 13, low[0], "end", "axis"))
            shapes.append(
                _text(zero + max(0.0, high[1] * scale) + 5, y + 13, high[0], style="axis")
            )
        height = _TOP + len(self.swings) * _ROW
        shapes.append(_line(zero, 0, zero, height, "zero"))
        longest = self.swings[0] if self.swings else None
        for change in sorted({longest.at_low, longest.at_high} if longest else ()):
            x = zero + change * scale
            shapes.append(_text(x, height + 13, self.show(change), "middle", "axis"))
        return Drawing(
            height=height + 20,
            label=self.label,
            shapes=shapes,
            key=["at the low end", "at the high end"],
        )

    def table(self) -> Cells:
        """Return a row for each input."""
        rows = [
            [each.name, each.low, each.high, self.show(each.at_low), self.show(each.at_high)]
            for each in self.swings
        ]
        titles = ["input", "low", "high", f"{self.result} at low", f"{self.result} at high"]
        return Cells(titles, rows)


def ticks(most: float) -> list[float]:
    """Return about five round values from zero up to at least `most`."""
    if most <= 0:
        return [0.0, 1.0]
    rough = most / _TICKS
    power = 10 ** math.floor(math.log10(rough))
    step = next(each * power for each in (1, 2, 2.5, 5, 10) if each * power >= rough * 0.999)
    return [step * number for number in range(math.ceil(most / step * 0.999) + 1)]


def _apart(places: Sequence[float]) -> list[float]:
    """Return places for the names of curves, moved down where two would overlap."""
    gap = 15.0
    found = list(places)
    for number, _ in _by_place(found):
        above = [found[other] for other, place in _by_place(found) if place < found[number]]
        if above and found[number] - max(above) < gap:
            found[number] = max(above) + gap
    return found


def _by_place(places: Sequence[float]) -> Iterator[tuple[int, float]]:
    return iter(sorted(enumerate(places), key=lambda each: each[1]))


def _rect(x: float, y: float, width: float, about: str, style: str) -> Shape:
    return Shape(kind="rect", x=x, y=y, x2=width, y2=_BAR, text=about, style=style)


def _line(x: float, y: float, x2: float, y2: float, style: str) -> Shape:
    return Shape(kind="line", x=x, y=y, x2=x2, y2=y2, style=style)


def _text(x: float, y: float, text: str, anchor: Anchor = "start", style: str = "") -> Shape:
    return Shape(kind="text", x=x, y=y, text=text, anchor=anchor, style=style)
