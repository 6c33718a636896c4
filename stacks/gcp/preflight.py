"""Asks Google, all at once, what would stop `up`: each answer a diagnostic, nothing is made."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from gcluster.schemas.diagnostics import Severity
from gcluster.schemas.quotas import quota_needs
from gcluster.stacks.gcp import capacity, owned
from gcluster.stacks.gcp.api import GoogleError
from gcluster.stacks.pulumi.errors import cause

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gcluster.schemas.catalog import Catalog
    from gcluster.schemas.diagnostics import Diagnostic
    from gcluster.schemas.spec import ClusterSpec
    from gcluster.stacks.gcp.api import Api
    from gcluster.stacks.gcp.layout import SiteLayout
    from gcluster.stacks.gcp.pools import PoolPlan

    Check = Callable[[], Iterator[Diagnostic]]

_AT_ONCE = 16


def preflight(
    api: Api, spec: ClusterSpec, plan: SiteLayout, catalog: Catalog
) -> tuple[Diagnostic, ...]:
    """Return what stands in the way of a site, in a fixed order.

    A question that could not be asked is a warning that names it: the others still count. Nobody
    logged in is one warning for all of them.
    """
    checks = list(_checks(api, spec, plan, catalog))
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = list(pool.map(lambda check: _answer(check[1]), checks))
    refused = [answer for answer in answers if isinstance(answer, GoogleError)]
    login = next((error for error in refused if cause(error.diagnostics[0]) == "expired"), None)
    if login is not None:
        return (_not_logged_in(login, [what for what, _ in checks]),)
    findings: list[Diagnostic] = []
    for (what, _), answer in zip(checks, answers, strict=True):
        if isinstance(answer, GoogleError):
            findings.append(_unanswered(what, answer))
        else:
            findings += answer
    return tuple(dict.fromkeys(findings))


def _checks(
    api: Api, spec: ClusterSpec, plan: SiteLayout, catalog: Catalog
) -> Iterator[tuple[str, Check]]:
    """Yield each question in words, with what asks it."""
    yield "the login's rights", partial(owned.check_rights, api, plan)
    yield "the subnet", partial(owned.check_subnet, api, plan, catalog)
    yield "private services access", partial(owned.check_peering, plan)
    for network in plan.fabric_networks:
        if network.existing is not None:
            what = f"network {network.existing}"
            yield what, partial(owned.check_fabric_network, api, plan, network)
    for need in quota_needs(spec, catalog):
        if need.provider == "gcp" and any(spec.pools[p].site == plan.site for p in need.pools):
            yield f"quota {need.code}", partial(capacity.check_quota, api, need)
    for pool in plan.pools:
        yield from _of_pool(api, plan, pool, catalog)
    yield from _of_images(api, plan, catalog)
    for email in dict.fromkeys((plan.access.node, plan.access.burst)):
        if email is not None:
            yield f"service account {email}", partial(owned.check_identity, api, email)


def _of_pool(
    api: Api, plan: SiteLayout, pool: PoolPlan, catalog: Catalog
) -> Iterator[tuple[str, Check]]:
    for zone in dict.fromkeys(rung.zone for rung in pool.rungs):
        yield f"{pool.machine} in {zone}", partial(capacity.check_zone, api, pool, zone)
    for rung in pool.rungs:
        if rung.reservation is not None:
            what = f"reservation {rung.reservation}"
            yield what, partial(capacity.check_reservation, api, pool, rung)
    yield f"price of {pool.machine}", partial(capacity.check_price, plan, pool, catalog)


def _of_images(api: Api, plan: SiteLayout, catalog: Catalog) -> Iterator[tuple[str, Check]]:
    """Yield a question for each image, however many pools boot from it."""
    users: dict[tuple[str | None, str], list[str]] = {}
    for pool in plan.pools:
        machine = catalog.machines.get(pool.machine)
        cpu = machine.cpu if machine is not None else None
        architecture: str = "x86_64" if cpu is None else cpu.architecture
        users.setdefault((pool.image, architecture), []).append(pool.name)
    for (image, architecture), pools in users.items():
        check = partial(owned.check_image, api, image, architecture, tuple(pools))
        yield f"image {image}", check


def _answer(check: Check) -> list[Diagnostic] | GoogleError:
    try:
        return list(check())
    except GoogleError as error:
        return error


def _not_logged_in(error: GoogleError, asked: list[str]) -> Diagnostic:
    said = error.diagnostics[0]
    return capacity.finding(
        "GC980",
        f"nobody is logged in to Google Cloud: {len(asked)} questions were not answered",
        severity=Severity.WARNING,
        detail="Not known: " + ", ".join(asked) + f"\n{said.detail}",
        hint=said.hint,
    )


def _unanswered(what: str, error: GoogleError) -> Diagnostic:
    said = error.diagnostics[0]
    return capacity.finding(
        "GC988",
        f"{what} could not be asked: {said.summary}",
        severity=Severity.WARNING,
        detail=said.detail,
        hint=said.hint,
    )
