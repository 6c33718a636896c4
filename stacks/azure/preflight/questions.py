"""Checks with Azure, all at once, what would stop `up`: each result a diagnostic; read-only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from ....schemas.catalog import Catalog
from ....schemas.diagnostics import Diagnostic
from ....schemas.spec import ClusterSpec
from ...pulumi.preflight import Cloud, ExistingMachines, Question, run_preflight
from ..api import Api
from ..offers import check_price
from ..plan.types import SitePlan
from ..scale_sets import existing_pools
from . import capacity, existing
from .capacity import check_quotas

_AZURE = Cloud(name="Azure", not_logged_in="GC991", unanswered="GC992")


def preflight(
    api: Api,
    spec: ClusterSpec,
    plan: SitePlan,
    catalog: Catalog,
    *,
    fetch: Callable[[str], bytes] | None = None,
) -> tuple[Diagnostic, ...]:
    """Return what blocks `up` of a site, in a fixed order; see `run_preflight`.

    `fetch` reads a page of the public price list, for tests.
    """
    return run_preflight(_AZURE, _questions(api, spec, plan, catalog, fetch))


def _questions(
    api: Api,
    spec: ClusterSpec,
    plan: SitePlan,
    catalog: Catalog,
    fetch: Callable[[str], bytes] | None,
) -> Iterator[Question]:
    machines = ExistingMachines(partial(existing_pools, api, plan))
    yield Question("the subscription", partial(existing.check_subscription, api, plan))
    yield Question("the login's rights", partial(existing.check_rights, api, plan))
    registered = partial(existing.check_registered, api, plan)
    yield Question("what the subscription is registered for", registered)
    for subnet in plan.network.subnets:
        if subnet.existing:
            room = partial(existing.check_subnet, api, plan, subnet, machines)
            yield Question(f"subnet {subnet.name}", room)
    yield Question("quotas", partial(check_quotas, api, spec, plan, catalog, machines))
    yield Question("machine types", partial(capacity.check_sizes, api, plan))
    for image in dict.fromkeys(pool.image for pool in plan.pools):
        exists = partial(capacity.check_image, api, plan, image)
        yield Question(f"image {capacity.describe_image(image)}", exists)
    for pool in plan.pools:
        for option in pool.offers:
            if option.reservation:
                fits = partial(capacity.check_reservation, api, pool, option)
                yield Question(f"reservation {option.reservation}", fits)
    for pool in {pool.machine: pool for pool in plan.pools}.values():
        price = partial(check_price, plan, pool, catalog, fetch)
        yield Question(f"price of {pool.machine}", price)
