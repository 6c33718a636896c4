"""What sites answered before `up`, as text: site by site, the worst first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...lifecycle.planning.changes import SiteAnswers
from ...schemas.diagnostics import Severity
from .diagnostics import diagnostics_text, summary_line
from .surface import Surface

_ORDER = list(Severity)


def preflight_text(answers: Iterable[SiteAnswers], surface: Surface) -> str:
    """Return the answers as text; a site where nothing stands in the way says so."""
    return "\n".join(line for site in answers for line in _site(site, surface))


def _site(site: SiteAnswers, surface: Surface) -> Iterator[str]:
    title = f"preflight of {site.site} ({site.provider})"
    found = sorted(site.diagnostics, key=lambda said: _ORDER.index(said.severity))
    yield f"{surface.paint('strong', title)}: {summary_line(found)}"
    if found:
        yield diagnostics_text(found, surface)
