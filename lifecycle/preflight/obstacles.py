"""Asks every site what would stop `up`, all at once, before anything is made."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from ...schemas.diagnostics import Diagnostic, Severity
from ...stacks.provider import ProviderError
from ..outcome import Exit, LifecycleError
from ..planning.changes import SiteAnswers
from ..progress import Finding, Reporter
from ..sites import OpenSite, at_each, open_sites

if TYPE_CHECKING:
    from ..cluster import Cluster


def ask_cluster(cluster: Cluster) -> tuple[SiteAnswers, ...]:
    """Ask the sites of a cluster that nobody is about to change.

    A site that can't be asked at all, for want of its extra or its login, says so in a warning.
    """
    return _ask(open_sites(cluster), _asked_or_said)


def refuse_obstacles(sites: tuple[OpenSite, ...], report: Reporter) -> None:
    """Ask the sites, and report what they say.

    Raises:
        LifecycleError: something stands in the way (exit code REFUSED).
        ProviderError: a site can't be asked at all.
    """
    answers = _ask(sites, lambda site: site.provider.preflight(site.context))
    found = [diagnostic for site in answers for diagnostic in site.diagnostics]
    for diagnostic in found:
        if not diagnostic.is_error:
            report(Finding(diagnostic=diagnostic))
    errors = tuple(diagnostic for diagnostic in found if diagnostic.is_error)
    if errors:
        raise LifecycleError(*errors, exit_code=Exit.REFUSED)


def _ask(
    sites: tuple[OpenSite, ...], ask: Callable[[OpenSite], tuple[Diagnostic, ...]]
) -> tuple[SiteAnswers, ...]:
    found = at_each(sites, ask)
    return tuple(
        SiteAnswers(site=site.name, provider=site.provider.name, diagnostics=found[site.name])
        for site in sites
    )


def _asked_or_said(site: OpenSite) -> tuple[Diagnostic, ...]:
    try:
        return site.provider.preflight(site.context)
    except ProviderError as error:
        return tuple(
            msgspec.structs.replace(
                said,
                severity=Severity.WARNING,
                summary=f"nothing of this site was checked: {said.summary}",
            )
            for said in error.diagnostics
        )
