"""The capacity blocks that a plan shows: which one a pool would buy, by its id, and no other."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from ....stacks.provider import BlockOffering, ProviderError
from ...cluster.open_site import OpenSite
from ...cluster.outcome import Exit, LifecycleError
from ..changes import FallbackListView, OptionView, Plan
from .decision import OptionOverrides


def choose_offerings(
    plan: Plan, sites: Iterable[OpenSite], wishes: OptionOverrides
) -> tuple[Plan, OptionOverrides]:
    """Return the plan with the blocks that may be bought now, and the overrides with their ids.

    Only pools that were named buy one. An option without any on offer stays in the list: it is
    skipped in its turn.

    Raises:
        LifecycleError: the cloud can't be queried, or the choice of a block is ambiguous.
    """
    if not wishes.buy:
        return plan, wishes
    at = {site.name: site for site in sites}
    ids: dict[str, str] = {}

    def chosen(of: FallbackListView, option: OptionView) -> OptionView:
        if option.buy_hours is None or option.state not in {"next", "after"}:
            return option
        found = _found_block(at[of.site], of.pool, option.key)
        if found is None:
            return replace(option, offering="none on offer now")
        ids[f"{of.pool}/{option.key}"] = found.id
        return replace(option, offering=_text(found), usd_at_once=found.usd)

    lists = tuple(
        replace(of, purchase_options=tuple(chosen(of, option) for option in of.purchase_options))
        if of.pool in wishes.buy and not of.after
        else of
        for of in plan.fallback_lists
    )
    return replace(plan, fallback_lists=lists), replace(wishes, offerings=ids)


def _found_block(site: OpenSite, pool: str, option: str) -> BlockOffering | None:
    try:
        return site.provider.block_offering(site.context, pool, option)
    except ProviderError as error:
        raise LifecycleError(*error.diagnostics, exit_code=Exit.REFUSED) from error


def _text(found: BlockOffering) -> str:
    when = f", {found.starts} to {found.ends}" if found.starts and found.ends else ""
    return f"{found.id} in {found.zone}{when}"
