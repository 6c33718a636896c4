"""`gcluster up --buy-capacity-block POOL`: the prompt before a purchase that can't be undone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from gcluster.lifecycle.cluster.outcome import Exit, failure
from gcluster.lifecycle.planning.changes import FallbackListView, OptionView
from gcluster.lifecycle.planning.purchase.decision import OptionOverrides

from .test_up import PLAN, UpResult

BLOCK = OptionView(
    key="buy-24h-use1-az4",
    market="capacity-block",
    zone="use1-az4",
    state="next",
    nodes="gpu[001-002]",
    usd_per_hour=78.66,
    is_bound=False,
    usd_at_once=1887.84,
    buy_hours=24,
    offering="cb-0abc in use1-az4, 2026-12-01 11:30 UTC to 2026-12-02 11:30 UTC",
)
FALLBACK_LIST = FallbackListView(site="east", pool="gpu", count=2, purchase_options=(BLOCK,))
BUYING = msgspec.structs.replace(PLAN, fallback_lists=(FALLBACK_LIST,))


@pytest.fixture
def buying(
    run: Callable[..., Any], put_doubles: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Any]:
    """Run the verb on a double that prompts about a purchase; `typed` are the answers."""

    def invoke(
        *words: str, typed: tuple[str, ...] = ()
    ) -> tuple[Any, list[str], list[OptionOverrides]]:
        answers, prompts, wished = iter(typed), list[str](), list[OptionOverrides]()

        def up(*_: Any, confirm: Any, wishes: OptionOverrides, **__: Any) -> UpResult:
            if not confirm(BUYING):
                raise failure("GC909", "nothing was changed", exit_code=Exit.REFUSED)
            wished.append(wishes)
            return UpResult()

        def answer(prompt: str) -> str:
            prompts.append(prompt)
            return next(answers)

        monkeypatch.setattr("gcluster.cli.console.can_ask", lambda: bool(typed))
        monkeypatch.setattr("builtins.input", answer)
        put_doubles("cluster.cluster", open_cluster=lambda target, **_: target)
        put_doubles("up.up", up=up)
        return run("up", "demo.yaml", *words), prompts, wished

    return invoke


def test_yes_alone_requests_no_purchase(buying: Callable[..., Any]) -> None:
    _, _, wished = buying("--yes")
    assert wished == [OptionOverrides()]


def test_a_purchase_is_requested_by_the_pools_name_with_hours_and_price(
    buying: Callable[..., Any],
) -> None:
    done, prompts, wished = buying("--buy-capacity-block", "gpu", typed=("gpu", "yes"))
    assert done.exit_code == 0
    assert prompts[0].splitlines() == [
        (
            "pool gpu may buy a capacity block of 2 nodes: 24 h for $1,887.84, paid at once, "
            "not refundable (cb-0abc in use1-az4, 2026-12-01 11:30 UTC to 2026-12-02 11:30 UTC)"
        ),
        "type gpu to do it: ",
    ]
    assert wished == [OptionOverrides(buy=frozenset({"gpu"}))]


@pytest.mark.parametrize("typed", ["yes", "y", "", "GPU"])
def test_a_yes_is_not_the_pools_name(typed: str, buying: Callable[..., Any]) -> None:
    done, _, wished = buying("--buy-capacity-block", "gpu", typed=(typed, "yes"))
    assert (done.exit_code, wished) == (int(Exit.REFUSED), [])


def test_a_pool_that_was_not_named_is_not_queried(buying: Callable[..., Any]) -> None:
    _, prompts, wished = buying(typed=("yes",))
    assert [prompt.splitlines()[-1] for prompt in prompts] == ["do this? [y/N] "]
    assert wished == [OptionOverrides()]


def test_without_a_terminal_a_named_purchase_needs_yes(buying: Callable[..., Any]) -> None:
    done, _, wished = buying("--buy-capacity-block", "gpu")
    assert (done.exit_code, wished) == (int(Exit.REFUSED), [])
    _, _, wished = buying("--buy-capacity-block", "gpu", "--yes")
    assert wished == [OptionOverrides(buy=frozenset({"gpu"}))]


def test_the_first_option_is_wished_for_by_pool(buying: Callable[..., Any]) -> None:
    _, _, wished = buying("--yes", "--from-first-option", "gpu")
    assert wished == [OptionOverrides(again=frozenset({"gpu"}))]
