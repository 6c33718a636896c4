"""Asks Azure, all at once, what would stop `up`: each answer a diagnostic, nothing is made."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from gcluster.schemas.diagnostics import Diagnostic, Severity
from gcluster.schemas.quotas import quota_needs
from gcluster.stacks.azure import offered, subscription
from gcluster.stacks.provider import ProviderError
from gcluster.stacks.pulumi.errors import cause

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gcluster.schemas.catalog import Catalog
    from gcluster.schemas.spec import ClusterSpec
    from gcluster.stacks.azure.api import Api
    from gcluster.stacks.azure.plan import SitePlan

    Check = Callable[[], Iterator[Diagnostic]]

_AT_ONCE = 16


def preflight(
    api: Api, spec: ClusterSpec, plan: SitePlan, catalog: Catalog
) -> tuple[Diagnostic, ...]:
    """Return what stands in the way of a site, in a fixed order.

    A question that could not be asked is a warning that names it: the others still count. Nobody
    logged in is one warning for all of them.
    """
    checks = list(_checks(api, spec, plan, catalog))
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = list(pool.map(lambda check: _answer(check[1]), checks))
    first = answers[0]
    if isinstance(first, ProviderError) and _is_login(first):
        return (_not_logged_in(first, [what for what, _ in checks]),)
    findings: list[Diagnostic] = []
    for (what, _), answer in zip(checks, answers, strict=True):
        if isinstance(answer, ProviderError):
            findings.append(_unanswered(what, answer))
        else:
            findings += answer
    return tuple(dict.fromkeys(findings))


def _checks(
    api: Api, spec: ClusterSpec, plan: SitePlan, catalog: Catalog
) -> Iterator[tuple[str, Check]]:
    """Yield each question in words, with what asks it."""
    yield "the subscription", partial(subscription.check_subscription, api, plan)
    yield "the login's rights", partial(subscription.check_rights, api, plan)
    yield (
        "what the subscription is registered for",
        partial(subscription.check_registered, api, plan),
    )
    for subnet in plan.network.subnets:
        if subnet.existing:
            yield f"subnet {subnet.name}", partial(subscription.check_subnet, api, plan, subnet)
    needs = [
        need
        for need in quota_needs(spec, catalog)
        if need.provider == "azure"
        and any(spec.pools[pool].site == plan.site for pool in need.pools)
    ]
    yield "quotas", partial(offered.check_quotas, api, plan, needs)
    yield "machine types", partial(offered.check_sizes, api, plan)
    images = dict.fromkeys(pool.image for pool in plan.pools)
    for image in images:
        yield f"image {offered.image_words(image)}", partial(offered.check_image, api, plan, image)
    for pool in plan.pools:
        for rung in pool.rungs:
            if rung.reservation:
                what = f"reservation {rung.reservation}"
                yield what, partial(offered.check_reservation, api, pool, rung)


def _answer(check: Check) -> list[Diagnostic] | ProviderError:
    try:
        return list(check())
    except ProviderError as error:
        return error


def _is_login(error: ProviderError) -> bool:
    return any(cause(finding) == "expired" for finding in error.diagnostics)


def _not_logged_in(error: ProviderError, unasked: list[str]) -> Diagnostic:
    return Diagnostic(
        code="GC991",
        severity=Severity.WARNING,
        summary=f"nobody is logged in to Azure, so {len(unasked)} questions were not asked",
        detail=f"Not asked: {', '.join(unasked)}.\n{error.diagnostics[0].detail}",
        hint="log in with `az login`; the plan itself needs no login",
    )


def _unanswered(what: str, error: ProviderError) -> Diagnostic:
    finding = error.diagnostics[0]
    return Diagnostic(
        code="GC992",
        severity=Severity.WARNING,
        summary=f"{what}: not checked, {finding.summary}",
        detail=finding.detail,
        hint=finding.hint,
    )
