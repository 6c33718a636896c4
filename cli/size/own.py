"""`gcluster size own`: buy nodes or rent them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from ...inventory.size.power import Hall, power, power_figures
from ...lifecycle.cluster.outcome import Exit, LifecycleError, failure
from ...lifecycle.operations.burst.simulate.sacct import is_sacct, read_sacct
from ...lifecycle.operations.burst.simulate.swf import read_swf
from ...schemas.catalog import Catalog, Machine, load_catalog
from ...schemas.cost.ownership import (
    HOURS_A_YEAR,
    Cluster,
    Refused,
    Rented,
    busy_shares,
    influences,
    mixed,
    node_price,
    over_time,
    over_use,
    owned,
    ownership_figures,
    rented,
)
from ...schemas.diagnostics import closest
from ...schemas.spec.units import Duration
from ..console import emit, say, stdout
from ..options import SizeFormat, SizeOutput
from ..render.document import document
from ..render.size.own import OwnershipAnswer, ownership_text
from ..render.size.own_page import own_page
from ..render.size.page import PAGES, written

_OPTIONS = ("on-demand", "spot", "reservation", "capacity-block")
_MOST = 1e12
_WEEK = 7 * 86_400.0


def own(  # noqa: PLR0917  # typer reads the options from the parameters
    machine: Annotated[
        str, typer.Option("--machine", metavar="TYPE", help="Machine type to own: dgx-h100.")
    ],
    nodes: Annotated[int, typer.Option("--nodes", min=1, max=16384, help="How many.")] = 16,
    rent: Annotated[
        str, typer.Option("--rent", metavar="TYPE", help="Machine type to rent instead.")
    ] = "",
    region: Annotated[
        str, typer.Option("--region", metavar="REGION", help="Where it would be rented.")
    ] = "",
    years: Annotated[
        float | None, typer.Option("--years", min=0.25, max=20, help="How long; default: 5.")
    ] = None,
    use: Annotated[
        float | None,
        typer.Option("--use", min=0.01, max=1, help="Share of the time at work; default: 0.7."),
    ] = None,
    price: Annotated[
        float | None,
        typer.Option("--price", min=1, max=1e8, help="USD of a node; default: as published."),
    ] = None,
    rent_price: Annotated[
        list[str] | None,
        typer.Option(
            "--rent-price",
            metavar="OPTION=USD",
            help="USD of a rented node and hour: reservation=30.",
        ),
    ] = None,
    values: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Another input: electricity=0.12."),
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            "--trace",
            metavar="FILE",
            help="Load of the past (SWF, or sacct's table): base and spill.",
        ),
    ] = None,
    pue: Annotated[
        float | None,
        typer.Option("--pue", min=1, max=5, help="Power of the hall / of its machines."),
    ] = None,
    within: Annotated[
        str, typer.Option("--within", metavar="TIME", help="When they must work: 60d.")
    ] = "",
    lead: Annotated[
        list[str] | None,
        typer.Option("--lead", metavar="OPTION=WEEKS", help="What a way to rent takes: spot=1."),
    ] = None,
    only_in: Annotated[
        str,
        typer.Option("--only-in", metavar="REGIONS", help="Regions where data may be."),
    ] = "",
    require: Annotated[
        str,
        typer.Option("--require", metavar="RULES", help="Rules to meet: hipaa,iso27001."),
    ] = "",
    certified: Annotated[
        list[str] | None,
        typer.Option(
            "--certified", metavar="OPTION=RULES", help="Rules that own or rent meets: own=hipaa."
        ),
    ] = None,
    catalog: Annotated[
        list[Path] | None,
        typer.Option("--catalog", metavar="FILE", help="Also a catalog file of your own."),
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Each input with its source.")] = False,
    fmt: SizeOutput = SizeFormat.TEXT,
) -> Exit:
    """Compare owning GPU nodes with renting them.

    Nothing is looked up or bought. Every input has a default with its source: --explain.
    """
    known = load_catalog(catalog or [])
    mine = _machine(known, machine)
    figures = ownership_figures()
    published = node_price(mine.gpu.model, mine.gpu.count) if mine.gpu else None
    if price is None and published is None:
        raise usage(f"no price is known of {mine.name}", "--price USD")
    counts = {each.name: each.value for each in figures.inputs}
    given = _given(values or [], counts, {"years": years, "use": use})
    counts |= {"node_price": price or (published.usd if published else 0.0)} | given
    bounds = {each.name: (each.low, each.high) for each in figures.inputs}
    if price is None and published is not None:
        bounds["node_price"] = (published.low, published.high)
    cluster = _cluster(mine, nodes, pue)
    hired = _machine(known, rent) if rent else None
    if hired is not None and not region:
        region = next((each.region for each in hired.prices if each.region), None) or ""
    ways, unknown, usd = _ways(cluster, counts, hired, region or None, rent_price or [])
    per = hired.gpu.count if hired and hired.gpu else cluster.gpus_a_node
    refused = _refused(
        [each.option for each in ways],
        region=region,
        lead={"own": counts["lead_weeks"], **_leads(lead or [])},
        within=within,
        only_in=only_in,
        require=require,
        certified=certified or [],
    )
    out = {each.option for each in refused}
    ways = [each for each in ways if each.option not in out]
    usd = None if "on-demand" in out else usd
    own_it = owned(cluster, counts)
    work = nodes * cluster.gpus_a_node * counts["years"] * HOURS_A_YEAR * counts["use"]
    base = None
    if trace is not None and "on-demand" not in out:
        if usd is None:
            raise usage("--trace needs a price on demand", "--rent TYPE --region REGION")
        one = _cluster(mine, 1, pue)
        base = mixed(one, counts, _load(trace, one.gpus_a_node), usd * one.gpus_a_node / per)
    answer = OwnershipAnswer(
        machine=mine.name,
        nodes=nodes,
        gpus=nodes * cluster.gpus_a_node,
        values=counts,
        given=sorted(given),
        owned=own_it,
        owned_usd_per_gpu_hour=own_it.total / work,
        rent=hired.name if hired else "",
        region=region or None,
        rented=ways,
        without_price=unknown,
        other_gpus=_other_gpus(mine, hired),
        influences=influences(cluster, counts, bounds, usd, per),
        mixed=base,
        price=published if price is None else None,
        inputs=figures.inputs,
        explain=explain,
        refused=refused,
        over_use=over_use(cluster, counts, {each.option: each.usd_per_hour for each in ways}, per),
        over_time=over_time(own_it, ways, counts["years"]),
    )
    if fmt is SizeFormat.JSON:
        emit(document(answer))
    elif fmt in PAGES:
        emit(written(own_page(answer), fmt))
    else:
        say(ownership_text(answer, stdout()))
    return Exit.OK


def machine_type(catalog: Catalog, name: str) -> Machine:
    """Return a machine type of the catalog; GC941 names one that is spelled alike."""
    if name in catalog.machines:
        return catalog.machines[name]
    near = closest(name, catalog.machines)
    hint = f'did you mean "{near}"?' if near else "gcluster machines lists them all"
    raise usage(f'no machine type is called "{name}"', hint)


def _machine(catalog: Catalog, name: str) -> Machine:
    found = machine_type(catalog, name)
    if found.gpu is None:
        raise usage(f"{name} has no GPUs", "gcluster machines lists those that have some")
    return found


def _cluster(machine: Machine, nodes: int, pue: float | None) -> Cluster:
    drawn = power(machine, 1, hall=Hall(pue=pue))
    if drawn is None or machine.gpu is None:
        raise usage(f"the power of {machine.name} isn't known", "give it in a --catalog file")
    mean = power_figures().draw.mean if drawn.basis != "gpus" else 1.0
    return Cluster(
        nodes=nodes,
        gpus_a_node=machine.gpu.count,
        rated_kw=drawn.rated_kw,
        drawn=mean,
        pue=drawn.pue,
    )


def _given(
    words: list[str], known: dict[str, float], options: dict[str, float | None]
) -> dict[str, float]:
    """Return the inputs that the user gave, by name."""
    found = {name: value for name, value in options.items() if value is not None}
    for word in words:
        name, value = _pair("--set", word)
        if name not in known:
            near = closest(name, known)
            hint = f'did you mean "{near}"?' if near else f"one of {', '.join(known)}"
            raise usage(f'--set "{name}" is no input', hint)
        if name in {"years", "staff_nodes"} and not value:
            raise usage(f"--set {name}=0: more than nothing is needed", f"--set {name}=5")
        if name == "use" and not 0 < value <= 1:
            raise usage(f"--set use={value:g} is no share of the time", "--use 0.7")
        found[name] = value
    return found


def _pair(option: str, word: str) -> tuple[str, float]:
    name, _, text = word.partition("=")
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= _MOST:
        raise usage(f'{option} "{word}" is no NAME=VALUE with a number', f"{option} {name}=1")
    return name, value


def _ways(
    cluster: Cluster,
    values: dict[str, float],
    machine: Machine | None,
    region: str | None,
    words: list[str],
) -> tuple[list[Rented], list[str], float | None]:
    """Return each way to rent, those without a price, and the price on demand."""
    prices: dict[str, float] = {}
    for word in words:
        option, usd = _pair("--rent-price", word)
        if option not in _OPTIONS:
            raise usage(f'"{option}" is no way to rent', f"one of {', '.join(_OPTIONS)}")
        prices[option] = usd
    if machine is None or machine.gpu is None:
        if prices:
            raise usage("--rent-price needs --rent: the machine type", "--rent p5.48xlarge")
        return [], [], None
    for price in machine.prices:
        if region is None or price.region == region:
            prices.setdefault(price.market, price.usd_per_hour)
    ways = [
        rented(
            cluster,
            values,
            option=option,
            usd_per_hour=prices[option],
            gpus_a_node=machine.gpu.count,
        )
        for option in _OPTIONS
        if prices.get(option)
    ]
    sold = machine.markets or ["on-demand"]
    unknown: list[str] = [
        option for option in _OPTIONS if option in sold and not prices.get(option)
    ]
    return ways, unknown, prices.get("on-demand")


def _other_gpus(mine: Machine, hired: Machine | None) -> str | None:
    if hired is None or hired.gpu is None or mine.gpu is None:
        return None
    return hired.gpu.model if hired.gpu.model != mine.gpu.model else None


def _leads(words: list[str]) -> dict[str, float]:
    """Return option -> weeks until it works, as the user gave them."""
    found = dict(_pair("--lead", word) for word in words)
    for option in found:
        if option not in {*_OPTIONS, "own"}:
            raise usage(f'--lead "{option}" is no option', f"one of own, {', '.join(_OPTIONS)}")
    return found


def _refused(
    options: list[str],
    *,
    region: str,
    lead: dict[str, float],
    within: str,
    only_in: str,
    require: str,
    certified: list[str],
) -> list[Refused]:
    """Return the ways that break a constraint, each with every reason.

    Where data may be is a question for rented nodes: owned ones are where the user puts them.
    """
    weeks = None if not within else _weeks(within)
    regions, rules = _words(only_in), _words(require.lower())
    meets: dict[str, list[str]] = {}
    for word in certified:
        option, equals, names = word.partition("=")
        if not equals or option not in {*_OPTIONS, "own", "rent"}:
            options_text = ", ".join(("own", "rent", *_OPTIONS))
            raise usage(f'--certified "{word}" is no OPTION=RULES', f"one of {options_text}")
        meets.setdefault(option, []).extend(_words(names.lower()))
    found = []
    for option in ("own", *options):
        reasons = []
        takes = lead.get(option, 0.0)
        if weeks is not None and takes > weeks:
            reasons.append(f"works {takes:g} weeks after the order, not within {weeks:.3g}")
        if option != "own" and regions and region not in regions:
            where = region or "a region that isn't known"
            reasons.append(f"in {where}, and data may be in {', '.join(regions)} only (--only-in)")
        own = [*meets.get(option, []), *(meets.get("rent", []) if option != "own" else [])]
        lacks = [rule for rule in rules if rule not in own]
        if lacks:
            reasons.append(f"nothing given says that it meets {', '.join(lacks)} (--certified)")
        if reasons:
            found.append(Refused(option=option, reason="; ".join(reasons)))
    return found


def _weeks(text: str) -> float:
    try:
        found = float(Duration.parse(text).value) / _WEEK
    except ValueError:
        found = 0.0
    if found <= 0:
        raise usage(f'--within "{text}" is no length of time', "such as 60d")
    return found


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _load(trace: Path, gpus: int) -> list[float]:
    """Return for each node the share of the time in which so many were busy.

    A processor of an SWF trace is a GPU; of sacct's table the GPUs of AllocTRES count.
    """
    if is_sacct(trace):
        held = read_sacct(trace)
        return busy_shares([(job.begin, job.end, math.ceil(job.gpus / gpus)) for job in held])
    spans = [
        (job.submit + job.wait, job.submit + job.wait + job.run, math.ceil(job.processors / gpus))
        for job in read_swf(trace).jobs
        if job.run > 0
    ]
    return busy_shares(spans)


def usage(summary: str, hint: str) -> LifecycleError:
    """Return a mistake in the options (GC941)."""
    return failure("GC941", summary, hint=hint, exit_code=Exit.USAGE)
