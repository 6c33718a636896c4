"""Bills as text: tables, bars, what they lack and where the prices come from."""

from __future__ import annotations

import msgspec
import pytest
from tests.cli.render.conftest import Check, Read

from gcluster.cli.console import Console, width
from gcluster.cli.render.document import document
from gcluster.cli.render.spec.cost import bills_text
from gcluster.schemas.cost.bill import Bill


def _bill(read: Read, name: str) -> Bill:
    return msgspec.convert(read("cost", name)[1]["bill"], Bill)


def test_a_case_is_rendered_as_its_golden_text(
    read: Read, check_text: Check, cost_case: str
) -> None:
    console, values = read("cost", cost_case)
    bill = msgspec.convert(values["bill"], Bill)
    check_text("cost", cost_case, bills_text([bill], console, chart=values["chart"]) + "\n")


def test_the_json_form_is_the_value_itself(read: Read, cost_case: str) -> None:
    bill = _bill(read, cost_case)
    assert msgspec.json.decode(document(bill), type=Bill) == bill


@pytest.mark.parametrize("columns", [56, 64, 80, 100, 140])
@pytest.mark.parametrize("chart", [False, True])
def test_no_line_is_wider_than_the_terminal(read: Read, columns: int, chart: bool) -> None:
    console = Console(width=columns, live=True, terminal=True)
    for name in ("everything", "at-most", "own-machines", "this-machine"):
        text = bills_text([_bill(read, name)], console, chart=chart)
        assert max(map(width, text.splitlines())) <= columns


def test_a_pipe_keeps_every_column_however_narrow(read: Read) -> None:
    text = bills_text([_bill(read, "everything")], Console(width=40))
    titles = "POOL MACHINE NODES $/NODE $/h NOW $/h WORST $/MONTH kW"
    assert titles in {" ".join(line.split()) for line in text.splitlines()}


def test_a_surface_without_unicode_gets_ascii_alone(read: Read) -> None:
    for name in ("everything", "at-most"):
        assert bills_text([_bill(read, name)], Console(unicode=False)).isascii()


def test_the_bar_of_a_pool_has_its_share_of_the_dearest(read: Read) -> None:
    lines = bills_text([_bill(read, "everything")], Console(), chart=True).splitlines()
    bars = {line.split()[0]: line for line in lines if line.endswith(("73.60", "1,440.00"))}
    whole = bars["train"].count("█") + bars["train"].count("░")
    assert bars["train"].count("█") == round(61 / 1440 * whole)
    assert bars["ours"].count("█") == round(73.6 / 1440 * whole)
    assert "░" not in bars["ours"]


def test_the_oldest_price_that_is_shown_is_reported(read: Read) -> None:
    text = bills_text([_bill(read, "everything")], Console())
    assert "the oldest price is of 2026-08-02;" in text


def test_a_cluster_above_its_budget_reports_by_how_much(read: Read) -> None:
    dear = msgspec.structs.replace(_bill(read, "at-most"), max_usd_per_hour=2000.0)
    assert (
        "budget $2,000.00/h: the worst case takes at most 150%, $990.35 too much"
        in bills_text([dear], Console()).splitlines()
    )


def test_several_clusters_end_with_their_sum_and_name_what_it_lacks(
    read: Read,
) -> None:
    both = [_bill(read, "everything"), _bill(read, "at-most")]
    last = bills_text(both, Console()).splitlines()[-1]
    assert last == (
        "2 clusters: ≤3,124.95 $/h now, worst case ≤4,503.95 $/h, without everything.head"
    )


def test_several_clusters_for_which_nothing_is_rented_have_no_sum(
    read: Read,
) -> None:
    both = [_bill(read, "own-machines"), _bill(read, "this-machine")]
    assert bills_text(both, Console()).splitlines()[-1] == "2 clusters: nothing is rented"
