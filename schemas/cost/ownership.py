"""What GPU nodes cost over years, bought and run or rented; from which use on owning is cheaper.

Amounts are US dollars of today, before tax. A purchase P that is worth R after n months, at a
monthly interest i, is paid by n equal amounts

    A = (P - R / (1 + i)^n) i / (1 - (1 + i)^-n)

(capital recovery factor of engineering economy), so interest is n A - (P - R). Everything else is
linear in nodes, months and hours.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta

from ..catalog.model.machine import Date, Source
from ..spec.model import SpecModel
from ..structure.compose import read_data_file

_FILE = Path(__file__).parent / "ownership.yaml"
HOURS_A_YEAR = 8760.0
_MONTHS = 12.0
NotNegative = Annotated[float, Meta(ge=0)]
Values: TypeAlias = Mapping[str, float]
"""Input -> its value, `node_price` (USD) among them."""


class NodePrice(SpecModel, frozen=True, kw_only=True):
    """What a node with such GPUs is sold for."""

    gpu: str
    gpus: Annotated[int, Meta(ge=1)]
    usd: NotNegative
    low: NotNegative
    high: NotNegative
    source: Source
    date: Date


class Input(SpecModel, frozen=True, kw_only=True):
    """A figure that the comparison needs, its default, and how far it may be off."""

    name: str
    what: str
    unit: Literal["share", "USD", "years", "weeks", "nodes"]
    value: NotNegative
    low: NotNegative
    high: NotNegative
    source: Source
    date: Date
    assumption: bool = False
    """Nothing that is published says it."""


class OwnershipFigures(SpecModel, frozen=True, kw_only=True):
    """The file."""

    node_prices: list[NodePrice]
    inputs: list[Input]


class Cluster(msgspec.Struct, frozen=True, kw_only=True):
    """What is bought."""

    nodes: int
    gpus_a_node: int
    rated_kw: float
    """Of a node."""
    drawn: float
    """What a node draws while it works, as a share of its rated power."""
    pue: float


class Owned(msgspec.Struct, frozen=True, kw_only=True):
    """What owning costs over the years, in USD."""

    items: dict[str, float]
    """What for -> how much; the residual value counts against it."""
    month: float
    """What is paid each month: the annuity and what runs."""
    purchase: float
    """Paid at the beginning where nothing is borrowed."""
    running: float
    """Of a month, without the purchase."""

    @property
    def total(self) -> float:
        """All items."""
        return sum(self.items.values())


class Rented(msgspec.Struct, frozen=True, kw_only=True):
    """The same GPU hours, rented one way."""

    option: str
    """on-demand, spot, reservation or capacity-block."""
    usd_per_hour: float
    """Of a rented node."""
    nodes: int
    """Rented nodes that have as many GPUs."""
    total: float
    """USD over the years."""
    usd_per_gpu_hour: float
    """For an hour in which a GPU works."""
    break_even_use: float | None
    """Owning is cheaper above this use; None: at none, or the option is paid for whole."""
    payback_months: float | None
    """When the rent that was saved has paid the purchase; None: not within the years."""


class Mixed(msgspec.Struct, frozen=True, kw_only=True):
    """Base load on owned nodes, what is above it rented."""

    owned: int
    """Nodes that are worth owning, for the given load."""
    peak: int
    """Most nodes that were busy at once."""
    total: float
    """USD over the years."""
    all_owned: float
    """USD, with the peak owned."""
    all_rented: float
    """USD, with nothing owned."""


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """A way to have GPUs that breaks a constraint."""

    option: str
    """own, or how it is rented."""
    reason: str


class Influence(msgspec.Struct, frozen=True, kw_only=True):
    """How far an input moves what owning costs more than renting, for a GPU hour of work."""

    name: str
    low: float
    """Of the input."""
    high: float
    usd_at_low: float
    """USD for a GPU hour, against the result with the value that counts."""
    usd_at_high: float


@lru_cache(maxsize=1)
def ownership_figures() -> OwnershipFigures:
    """Return the figures that come with gcluster."""
    return read_data_file(_FILE, OwnershipFigures)


def node_price(gpu: str, gpus: int) -> NodePrice | None:
    """Return what a node with such GPUs is sold for; None: not known."""
    found = ownership_figures().node_prices
    return next((each for each in found if (each.gpu, each.gpus) == (gpu, gpus)), None)


def owned(cluster: Cluster, values: Values) -> Owned:
    """Return what such nodes cost over the years of `values`."""
    years = values["years"]
    months = years * _MONTHS
    nodes_usd = cluster.nodes * values["node_price"]
    purchase = _purchase(cluster, values)
    residual = purchase * values["residual"]
    paid = _annuity(purchase, residual, values["interest"] / _MONTHS, months)
    running = _running(cluster, values)
    items = {
        "nodes": nodes_usd,
        "network": nodes_usd * values["network"],
        "storage": nodes_usd * values["storage"],
        "residual value": -residual,
        "interest": paid * months - (purchase - residual),
        **{name: usd * months for name, usd in running.items()},
    }
    month = sum(running.values())
    return Owned(items=items, month=paid + month, purchase=purchase, running=month)


def rented(
    cluster: Cluster,
    values: Values,
    *,
    option: str,
    usd_per_hour: float,
    gpus_a_node: int,
) -> Rented:
    """Return what the same GPUs cost rented.

    On demand and spot are paid for the hours in which they work, spot also for the work that is
    lost; everything else is paid for the whole time.

    Args:
        cluster: what would be bought.
        values: the inputs.
        option: how it is rented.
        usd_per_hour: of a rented node.
        gpus_a_node: of a rented node.
    """
    use, years = values["use"], values["years"]
    nodes = math.ceil(cluster.nodes * cluster.gpus_a_node / gpus_a_node)
    hours = years * HOURS_A_YEAR
    whole = option not in {"on-demand", "spot"}
    more = 1 + values["spot_lost"] if option == "spot" else 1.0
    full = nodes * usd_per_hour * hours * more
    total = full if whole else full * use
    own = owned(cluster, values)
    even = None
    if not whole:
        idle = owned(cluster, {**values, "use": 0.0}).total
        busy = owned(cluster, {**values, "use": 1.0}).total
        even = idle / (full - (busy - idle)) if full > busy - idle else None
    saved = total / (years * _MONTHS) - own.running
    payback = own.purchase / saved if saved > 0 else None
    work = cluster.nodes * cluster.gpus_a_node * hours * use
    return Rented(
        option=option,
        usd_per_hour=usd_per_hour,
        nodes=nodes,
        total=total,
        usd_per_gpu_hour=total / work,
        break_even_use=even if even is not None and even <= 1 else None,
        payback_months=payback if payback is not None and payback <= years * _MONTHS else None,
    )


def over_use(
    cluster: Cluster, values: Values, prices: Mapping[str, float], gpus_a_node: int
) -> dict[str, list[tuple[float, float]]]:
    """Return for owning and each way to rent what it costs over the years at ten uses.

    Args:
        cluster: what would be bought.
        values: the inputs; `use` doesn't count.
        prices: option -> USD of a rented node and hour.
        gpus_a_node: of a rented node.
    """
    uses = [each / 10 for each in range(1, 11)]
    found = {
        "own": [(use, owned(cluster, {**values, "use": use}).total) for use in uses],
    }
    for option, usd in prices.items():
        found[option] = [
            (
                use,
                rented(
                    cluster,
                    {**values, "use": use},
                    option=option,
                    usd_per_hour=usd,
                    gpus_a_node=gpus_a_node,
                ).total,
            )
            for use in uses
        ]
    return found


def over_time(
    own: Owned, ways: Sequence[Rented], years: float
) -> dict[str, list[tuple[float, float]]]:
    """Return for owning and each way to rent what is paid until each quarter's end.

    Owning is the purchase at once and what runs, without interest; what the nodes are worth in the
    end is not taken off.
    """
    months = [float(each) for each in range(0, math.ceil(years * _MONTHS) + 1, 3)]
    found = {"own": [(each, own.purchase + own.running * each) for each in months]}
    for way in ways:
        monthly = way.total / (years * _MONTHS)
        found[way.option] = [(each, monthly * each) for each in months]
    return found


def mixed(node: Cluster, values: Values, busy: Sequence[float], usd_per_hour: float) -> Mixed:
    """Return how many nodes are worth owning where the load is known, the rest rented by the hour.

    A node is worth owning where the share of the time in which it is busy is above the break-even
    use, and the first is the busiest.

    Args:
        node: one node.
        values: the inputs; `use` doesn't count.
        busy: for each node, the share of the time in which at least so many are busy; falling.
        usd_per_hour: of a rented node with as many GPUs.
    """
    rent = usd_per_hour * values["years"] * HOURS_A_YEAR
    own = [owned(node, {**values, "use": share}).total for share in busy]
    hire = [rent * share for share in busy]
    cheaper = [mine < hired for mine, hired in zip(own, hire, strict=True)]
    count = next((n for n, is_cheaper in enumerate(cheaper) if not is_cheaper), len(cheaper))
    return Mixed(
        owned=count,
        peak=len(busy),
        total=sum(own[:count]) + sum(hire[count:]),
        all_owned=sum(own),
        all_rented=sum(hire),
    )


def busy_shares(spans: Sequence[tuple[float, float, int]]) -> list[float]:
    """Return for each node the share of the time in which at least so many were busy.

    Args:
        spans: begin and end of each job in seconds, and its nodes.
    """
    changes: dict[float, int] = {}
    for begin, end, nodes in spans:
        changes[begin] = changes.get(begin, 0) + nodes
        changes[end] = changes.get(end, 0) - nodes
    times = sorted(changes)
    at: dict[int, float] = {}
    count = 0
    for moment, following in pairwise(times):
        count += changes[moment]
        at[count] = at.get(count, 0.0) + following - moment
    whole = times[-1] - times[0] if times else 0.0
    shares, rest = [0.0] * max(at, default=0), 0.0
    for number in range(len(shares), 0, -1):
        rest += at.get(number, 0.0)
        shares[number - 1] = rest / whole
    return shares


def influences(
    cluster: Cluster,
    values: Values,
    bounds: Mapping[str, tuple[float, float]],
    usd_per_hour: float | None,
    gpus_a_node: int,
) -> list[Influence]:
    """Return how far each input moves the result, the strongest first.

    Those that don't move it are left out.

    Args:
        cluster: what would be bought.
        values: the inputs.
        bounds: input -> its least and most.
        usd_per_hour: of a node rented on demand; None: what owning alone costs is compared.
        gpus_a_node: of a rented node.
    """

    def result(changed: Values) -> float:
        hours = changed["years"] * HOURS_A_YEAR * changed["use"]
        own = owned(cluster, changed).total / (cluster.nodes * cluster.gpus_a_node * hours)
        return own - (0.0 if usd_per_hour is None else usd_per_hour / gpus_a_node)

    now = result(values)
    found = [
        Influence(
            name=name,
            low=low,
            high=high,
            usd_at_low=result({**values, name: low}) - now,
            usd_at_high=result({**values, name: high}) - now,
        )
        for name, (low, high) in bounds.items()
    ]
    moving = [each for each in found if each.usd_at_low or each.usd_at_high]
    return sorted(moving, key=lambda each: -max(abs(each.usd_at_low), abs(each.usd_at_high)))


def _purchase(cluster: Cluster, values: Values) -> float:
    """Return what nodes, network and storage cost to buy."""
    return cluster.nodes * values["node_price"] * (1 + values["network"] + values["storage"])


def _annuity(purchase: float, residual: float, interest: float, months: float) -> float:
    if not interest:
        return (purchase - residual) / months
    growth = math.pow(1 + interest, months)
    return (purchase - residual / growth) * interest / (1 - 1 / growth)


def _running(cluster: Cluster, values: Values) -> dict[str, float]:
    """Return what runs, in USD a month."""
    use = values["use"]
    rated = cluster.nodes * cluster.rated_kw
    drawn = rated * (use * cluster.drawn + (1 - use) * values["idle"]) * cluster.pue
    return {
        "electricity": drawn * HOURS_A_YEAR / _MONTHS * values["electricity"],
        "space": rated * values["space"],
        "support": _purchase(cluster, values) * values["support"] / _MONTHS,
        "staff": cluster.nodes / values["staff_nodes"] * values["staff_usd"] / _MONTHS,
    }
