"""A report on sizes: the same parts as one HTML page with plots, or as Markdown with tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from ...options import SizeFormat
from ..page import page_template
from .plots import Cells, Curves, Stacks, Tornado

PAGES = (SizeFormat.MARKDOWN, SizeFormat.HTML)
"""Formats that are pages."""
_TEMPLATE = Path(__file__).with_name("page.html.j2")


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A heading, and what is below it."""

    title: str
    text: list[str] = []
    cells: Cells | None = None
    plot: Stacks | Curves | Tornado | None = None


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """A whole report."""

    title: str
    about: str
    parts: list[Part]
    notes: list[str]


def written(page: Page, fmt: SizeFormat) -> str:
    """Return a page in a format of PAGES."""
    return page_html(page) if fmt is SizeFormat.HTML else page_markdown(page)


def page_html(page: Page) -> str:
    """Return one HTML file: no script, no network, plots as SVG with their values below."""
    return page_template(_TEMPLATE).render(page=page)


def page_markdown(page: Page) -> str:
    """Return Markdown: plots are tables of their values."""
    return "\n".join(_lines(page))


def _lines(page: Page) -> Iterator[str]:
    yield from (f"# {_plain(page.title)}", "", _plain(page.about))
    for part in page.parts:
        yield from ("", f"## {_plain(part.title)}")
        for text in part.text:
            yield from ("", _plain(text))
        for cells in (part.cells, part.plot.table() if part.plot else None):
            if cells is not None:
                yield from ("", *_table(cells))
    if page.notes:
        yield from ("", "## Notes", "")
        yield from (f"- {_plain(note)}" for note in page.notes)


def _table(cells: Cells) -> Iterator[str]:
    yield f"| {' | '.join(map(_plain, cells.titles))} |"
    yield f"| {' | '.join('---' if n == 0 else '---:' for n in range(len(cells.titles)))} |"
    for row in cells.rows:
        yield f"| {' | '.join(map(_plain, row))} |"


def _plain(text: str) -> str:
    """Return text that stays in its cell and is no markup."""
    one = " ".join(text.split())
    for mark in "\\`*_[]<>|#":
        one = one.replace(mark, f"\\{mark}")
    return one
