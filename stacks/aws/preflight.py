"""Asks AWS, all at once, what would stop `up`: each answer a diagnostic, nothing is made."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from gcluster.schemas.diagnostics import Severity
from gcluster.schemas.quotas import quota_needs
from gcluster.stacks.aws import capacity, owned
from gcluster.stacks.aws.api import AwsError
from gcluster.stacks.pulumi.errors import cause

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gcluster.schemas.catalog import Catalog
    from gcluster.schemas.diagnostics import Diagnostic
    from gcluster.schemas.spec import ClusterSpec
    from gcluster.stacks.aws.api import Api
    from gcluster.stacks.aws.plan import PoolPlan, SitePlan

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
        answers = list(pool.map(lambda check: _answer(*check), checks))
    failed = [(w, a) for (w, _), a in zip(checks, answers, strict=True) if isinstance(a, AwsError)]
    if failed and all(_is_login(error) for _, error in failed):
        return (_not_logged_in(failed[0][1], [what for what, _ in failed]),)
    findings: list[Diagnostic] = []
    for (what, _), answer in zip(checks, answers, strict=True):
        if isinstance(answer, AwsError):
            findings.append(_unanswered(what, answer))
        else:
            findings += answer
    return tuple(dict.fromkeys(findings))


def _checks(
    api: Api, spec: ClusterSpec, plan: SitePlan, catalog: Catalog
) -> Iterator[tuple[str, Check]]:
    """Yield each question in words, with what asks it."""
    site = plan.labels.site
    yield "the account", partial(owned.check_account, api, plan)
    yield "the login's rights", partial(owned.check_rights, api, plan)
    yield "the network", partial(owned.check_network, api, plan)
    yield "the security groups", partial(owned.check_groups, api, plan)
    for need in quota_needs(spec, catalog):
        if need.provider == "aws" and any(spec.pools[pool].site == site for pool in need.pools):
            yield f"quota {need.code}", partial(capacity.check_quota, api, need)
    for pool in plan.pools:
        yield from _of_pool(api, pool, catalog)
    yield from _of_images(api, plan, catalog)
    keys = [plan.kms_key, *(lustre.kms_key for lustre in plan.lustre)]
    for key in dict.fromkeys(key for key in keys if key):
        yield f"key {key}", partial(owned.check_key, api, key)
    profiles = (plan.identity.node_profile, plan.identity.burst_profile)
    for profile in dict.fromkeys(profile for profile in profiles if profile):
        yield f"role {profile}", partial(owned.check_profile, api, profile)


def _of_pool(api: Api, pool: PoolPlan, catalog: Catalog) -> Iterator[tuple[str, Check]]:
    yield f'zones of pool "{pool.name}"', partial(capacity.check_zones, api, pool)
    for offer in pool.offers:
        rung = offer.rung
        if rung.reservation is not None:
            yield (
                f"reservation {rung.reservation}",
                partial(capacity.check_reservation, api, pool, offer),
            )
        if rung.buy_hours is not None:
            yield (
                f'capacity blocks for pool "{pool.name}"',
                partial(capacity.check_block_offering, api, pool, offer),
            )
    if any(offer.rung.market == "on-demand" for offer in pool.offers):
        machine = catalog.machines.get(pool.machine)
        price = machine.price(region=api.region) if machine is not None else None
        known = None if price is None else price.usd_per_hour
        yield f"price of {pool.machine}", partial(capacity.check_price, api, pool, known)


def _of_images(api: Api, plan: SitePlan, catalog: Catalog) -> Iterator[tuple[str, Check]]:
    """Yield a question for each image, however many pools boot from it."""
    users: dict[tuple[str, str], list[PoolPlan]] = {}
    for pool in plan.pools:
        machine = catalog.machines.get(pool.machine)
        cpu = None if machine is None else machine.cpu
        architecture = "x86_64" if cpu is None else str(cpu.architecture)
        users.setdefault((pool.image.ami, architecture), []).append(pool)
    for (ami, architecture), pools in users.items():
        names = tuple(pool.name for pool in pools)
        yield (
            f"image {ami}",
            partial(owned.check_image, api, pools[0].image, architecture, names),
        )


def _answer(_: str, check: Check) -> list[Diagnostic] | AwsError:
    try:
        return list(check())
    except AwsError as error:
        return error


def _is_login(error: AwsError) -> bool:
    return any(cause(finding) == "expired" for finding in error.diagnostics)


def _not_logged_in(error: AwsError, unknown: list[str]) -> Diagnostic:
    said = error.diagnostics[0]
    return capacity.finding(
        "GC970",
        f"nobody is logged in to AWS: {len(unknown)} questions were not asked",
        detail=f"Not known: {', '.join(unknown)}\n{said.detail}",
        hint=said.hint,
        severity=Severity.WARNING,
    )


def _unanswered(what: str, error: AwsError) -> Diagnostic:
    said = error.diagnostics[0]
    return capacity.finding(
        "GC970",
        f"AWS did not say how it is with {what}: {error.code}",
        detail=said.detail,
        hint=said.hint,
        severity=Severity.WARNING,
    )
