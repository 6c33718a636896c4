"""Checks with OCI, all at once, what would stop `up`: each result a diagnostic; read-only."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ....schemas.catalog import Catalog
from ....schemas.diagnostics import Diagnostic, Severity
from ....schemas.spec import ClusterSpec
from ...pulumi.preflight import (
    Cloud,
    ExistingMachines,
    Question,
    finding,
    run_preflight,
    site_quotas,
)
from ..api import Api
from ..hosts import instances
from ..plan.types import PoolPlan, SitePlan
from . import capacity, existing

_OCI = Cloud(name="OCI", not_logged_in="GC970", unanswered="GC970")


def preflight(
    api: Api, spec: ClusterSpec, plan: SitePlan, catalog: Catalog
) -> tuple[Diagnostic, ...]:
    """Return what blocks `up` of a site, in a fixed order; see `run_preflight`."""
    return run_preflight(_OCI, _questions(api, spec, plan, catalog))


def _questions(api: Api, spec: ClusterSpec, plan: SitePlan, catalog: Catalog) -> Iterator[Question]:
    machines = ExistingMachines(lambda: (machine.pool for machine in instances(api, plan)))
    yield Question("the login", partial(existing.check_login, api, plan))
    yield Question("the network", partial(existing.check_network, api, plan, machines))
    for number in plan.domains:
        there = partial(capacity.check_domain, api, plan, number)
        yield Question(f"availability domain {number}", there)
    for need in site_quotas(spec, catalog, plan.site):
        room = partial(capacity.check_limit, api, plan, spec, catalog, need=need, existing=machines)
        yield Question(f"limit {need.code}", room)
    for pool in plan.pools:
        yield from _of_pool(api, plan, pool, machines)
    yield from _of_images(api, plan)
    for group in plan.network.security_groups:
        check = partial(existing.check_exists, api, "security group", "networksecuritygroup", group)
        yield Question(f"security group {group}", check)
    keys = [plan.kms_key, *(lustre.kms_key for lustre in plan.lustre)]
    keys += [system.kms_key for system in plan.file_storage]
    for key in dict.fromkeys(key for key in keys if key):
        yield Question(f"key {key}", partial(existing.check_exists, api, "key", "key", key))


def _of_pool(
    api: Api, plan: SitePlan, pool: PoolPlan, machines: ExistingMachines
) -> Iterator[Question]:
    for offer in pool.offers:
        if offer.option.reservation is not None:
            fits = partial(capacity.check_reservation, api, plan, pool, offer, machines)
            yield Question(f"reservation {offer.option.reservation}", fits)
        else:
            room = partial(capacity.check_capacity, api, plan, pool, offer, machines)
            yield Question(f'{offer.key} for pool "{pool.name}"', room)
    if not pool.image.image and not pool.image.operating_system:
        found = finding(
            "GC977",
            f"image of pool {pool.name}: OCI has none of the distribution; name one: image: OCID",
        )
        yield Question(f"image of pool {pool.name}", lambda: (found,))
    if pool.elastic and pool.spans_nodes:
        alone = finding(
            "GC976",
            f'pool "{pool.name}": elastic nodes of {pool.machine} are not joined by NVLink',
            severity=Severity.WARNING,
            detail="They are launched one by one; only a fixed count makes a GPU memory cluster.",
        )
        yield Question(f"NVLink of pool {pool.name}", lambda: (alone,))


def _of_images(api: Api, plan: SitePlan) -> Iterator[Question]:
    """Yield a question for each image that the spec names, however many pools boot from it."""
    users: dict[str, list[PoolPlan]] = {}
    for pool in plan.pools:
        if pool.image.image:
            users.setdefault(pool.image.image, []).append(pool)
    for image, pools in users.items():
        shapes = tuple(dict.fromkeys(pool.shape.name for pool in pools))
        names = tuple(pool.name for pool in pools)
        yield Question(f"image {image}", partial(existing.check_image, api, image, shapes, names))
