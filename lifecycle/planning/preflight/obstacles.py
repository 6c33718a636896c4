"""What would stop `up`, asked of every site at once before anything is made.

Also refused here: repositories that nodes need and that are unsigned.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ....inventory.compile import CompiledCluster
from ....schemas.diagnostics import Diagnostic, Severity
from ....stacks.provider import ProviderError
from ...cluster.cluster import Cluster
from ...cluster.outcome import Exit, LifecycleError
from ...cluster.progress import Finding, Reporter
from ...cluster.sites import OpenSite, at_each, open_sites
from ..changes import SiteAnswers
from .offline import unsigned


def ask_cluster(cluster: Cluster) -> tuple[SiteAnswers, ...]:
    """Ask the sites of a cluster that nobody is about to change.

    A site that can't be asked at all, for want of its extra or its login, says so in a warning.
    """
    return _ask(open_sites(cluster), _requested_or_given)


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


def _requested_or_given(site: OpenSite) -> tuple[Diagnostic, ...]:
    try:
        return site.provider.preflight(site.context)
    except ProviderError as error:
        return tuple(
            msgspec.structs.replace(
                diagnostic,
                severity=Severity.WARNING,
                summary=f"nothing of this site was checked: {diagnostic.summary}",
            )
            for diagnostic in error.diagnostics
        )


def refuse_unsigned(compiled: CompiledCluster) -> None:
    """Let a cluster pass whose repositories all have a key that is known by its fingerprint.

    Raises:
        LifecycleError: one of them hasn't; says which source and for which pools.
    """
    found = unsigned(compiled)
    if found:
        raise LifecycleError(*found, exit_code=Exit.REFUSED)
