"""What would stop `up`, queried from every site at once before anything is created.

Also refused here: repositories that nodes need and that are unsigned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from ....inventory.compile import CompiledCluster
from ....schemas.derived.failover import elsewhere
from ....schemas.diagnostics import Diagnostic, Severity
from ....stacks.provider import ProviderError
from ...cluster.cluster import Cluster
from ...cluster.open_site import OpenSite, at_each
from ...cluster.outcome import Exit, LifecycleError
from ...cluster.progress import Finding, Reporter
from ...cluster.sites import open_sites
from ..changes import SiteAnswers
from .offline import unsigned


def preflight_of(cluster: Cluster) -> tuple[SiteAnswers, ...]:
    """Query the sites of a cluster, without a change to follow.

    A site that can't be queried, for lack of its extra or its login, gives a warning.
    """
    return _query(open_sites(cluster), _requested_or_given)


def refuse_obstacles(sites: tuple[OpenSite, ...], report: Reporter) -> None:
    """Query the sites, and report their findings.

    Raises:
        LifecycleError: something blocks `up` (exit code REFUSED).
        ProviderError: a site can't be queried.
    """
    answers = _query(sites, lambda site: site.provider.preflight(site.context))
    found = [diagnostic for site in answers for diagnostic in site.diagnostics]
    for diagnostic in found:
        if not diagnostic.is_error:
            report(Finding(diagnostic=diagnostic))
    errors = tuple(diagnostic for diagnostic in found if diagnostic.is_error)
    if errors:
        raise LifecycleError(*errors, exit_code=Exit.REFUSED)


def _query(
    sites: tuple[OpenSite, ...], ask: Callable[[OpenSite], tuple[Diagnostic, ...]]
) -> tuple[SiteAnswers, ...]:
    found = at_each(sites, ask)
    return tuple(
        SiteAnswers(
            site=site.name,
            provider=site.provider.name,
            diagnostics=(*found[site.name], *_of_failover(site, found[site.name])),
        )
        for site in sites
    )


def _of_failover(site: OpenSite, known: tuple[Diagnostic, ...]) -> Iterator[Diagnostic]:
    """Yield what a site lacks for pools that would be made there next: nothing of it blocks yet."""
    for pool, other, moved in elsewhere(site.context.spec):
        if other != site.name:
            continue
        there = msgspec.structs.replace(site.context, spec=moved)
        moved_site = msgspec.structs.replace(site, context=there)
        for found in _requested_or_given(moved_site):
            if found not in known:
                yield msgspec.structs.replace(
                    found,
                    severity=Severity.WARNING if found.is_error else found.severity,
                    summary=f"for failover of pool {pool}: {found.summary}",
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
    """Check that all repositories of a cluster have a key with a known fingerprint.

    Raises:
        LifecycleError: one of them hasn't; names the source and the pools.
    """
    found = unsigned(compiled)
    if found:
        raise LifecycleError(*found, exit_code=Exit.REFUSED)
