"""`gcluster size`: which machines a model needs, before there is a spec."""

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from ...inventory.size.constants import constants
from ...inventory.size.explanation import explanation, serving_explanation
from ...inventory.size.power import Hall, Power, power
from ...inventory.size.serving import (
    Load,
    ServingPlan,
    by_batch,
    serving_constants,
    serving_plan,
    swings,
)
from ...inventory.size.training import (
    BATCH_TOKENS,
    MARGIN,
    Plan,
    Workload,
    levers,
    plan,
    room,
    scaling,
)
from ...lifecycle.cluster.outcome import Exit
from ...schemas.catalog import Catalog
from ..app import group
from ..console import emit, say, stdout
from ..options import SizeFormat, SizeOutput, complete_target
from ..render.document import document
from ..render.size.page import PAGES, written
from ..render.size.serve import ServingAnswer, serving_text
from ..render.size.serve_page import serve_page
from ..render.size.train import Answer, answer_text, plan_document
from ..render.size.train_page import train_page
from ..size import words
from ..size.measured import measured
from ..size.own import machine_type, own, usage

app = group("size")

PrecisionWord: TypeAlias = Literal["bf16", "fp8"]
MethodWord: TypeAlias = Literal["full", "lora"]
ModelWord: TypeAlias = Annotated[
    str,
    typer.Option(
        "--model", metavar="MODEL", help="A model by name, or the path of its config.json."
    ),
]
MachineWords: TypeAlias = Annotated[
    str,
    typer.Option(
        "--machine", metavar="TYPES", help="Machine types, with commas between: dgx-h100."
    ),
]
Explain: TypeAlias = Annotated[
    bool, typer.Option("--explain", help="Each figure with its formula and source.")
]
Margin: TypeAlias = Annotated[
    str, typer.Option("--margin", metavar="SHARE", help="GPU memory to leave free.")
]
Region: TypeAlias = Annotated[
    str, typer.Option("--region", metavar="REGION", help="Region whose prices count.")
]
Catalogs: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option("--catalog", metavar="FILE", help="Also a catalog file of your own."),
]
SpecFile: TypeAlias = Annotated[
    Path | None,
    typer.Option("--spec", metavar="FILE", help="Write a spec of the first machines listed."),
]
_GIGA = 1e9
_MOST_TOKENS = 1e16
_MOST_SEQUENCE = 2**24


@app.callback()
def size() -> None:
    """Size machines for a model: fit, time, cost, failures."""


app.command("own")(own)


@app.command("train")
def train(  # noqa: PLR0917  # typer reads the options from the parameters
    model: ModelWord,
    machine: MachineWords,
    tokens: Annotated[
        str, typer.Option("--tokens", metavar="COUNT", help="Tokens of the run: 1.4T, 500B.")
    ] = "",
    deadline: Annotated[
        str, typer.Option("--deadline", metavar="TIME", help="How long it may take: 30d.")
    ] = "",
    nodes: Annotated[
        int | None,
        typer.Option(
            "--nodes", min=1, max=16384, help="Machines; default: as few as fit, in time."
        ),
    ] = None,
    sequence: Annotated[
        str,
        typer.Option(
            "--sequence", metavar="TOKENS", help="Tokens of a sequence; default: 8192, or fewer."
        ),
    ] = "",
    batch: Annotated[
        str,
        typer.Option("--batch", metavar="TOKENS", help="Tokens of a step; default: 4194304."),
    ] = "",
    precision: Annotated[
        PrecisionWord, typer.Option("--precision", help="What linear layers compute in.")
    ] = "bf16",
    method: Annotated[
        MethodWord, typer.Option("--method", help="Train all weights, or LoRA adapters.")
    ] = "full",
    lora_rank: Annotated[
        int, typer.Option("--lora-rank", min=1, max=4096, help="Rank of the adapters.")
    ] = 16,
    margin: Margin = f"{MARGIN:.0%}",
    region: Region = "",
    pue: Annotated[
        float | None,
        typer.Option(
            "--pue", min=1, max=5, help="Power of the hall / of its machines; default: known."
        ),
    ] = None,
    rack_kw: Annotated[
        float | None,
        typer.Option("--rack-kw", min=1, max=1000, help="Power that a rack gets; default: 40."),
    ] = None,
    co2: Annotated[
        float | None,
        typer.Option("--co2", min=0, max=5, help="kg CO2e of a kWh; default: the region's."),
    ] = None,
    storage_read: Annotated[
        float | None,
        typer.Option("--storage-read", min=0.001, max=1e6, help="GB/s that storage delivers."),
    ] = None,
    storage_write: Annotated[
        float | None,
        typer.Option("--storage-write", min=0.001, max=1e6, help="GB/s that storage takes."),
    ] = None,
    token_bytes: Annotated[
        float, typer.Option("--token-bytes", min=0.1, max=1e7, help="Bytes read for a token.")
    ] = 4.0,
    oversubscription: Annotated[
        float,
        typer.Option("--oversubscription", min=1, max=64, help="Of leaf switches: 2 is 2:1."),
    ] = 1.0,
    leaf_nodes: Annotated[
        int | None,
        typer.Option("--leaf-nodes", min=1, max=16384, help="Nodes below one leaf switch."),
    ] = None,
    from_cluster: Annotated[
        str,
        typer.Option(
            "--from-cluster",
            metavar="CLUSTER",
            help="Bandwidths of its certificate count.",
            autocompletion=complete_target,
        ),
    ] = "",
    catalog: Catalogs = None,
    explain: Explain = False,
    spec: SpecFile = None,
    name: Annotated[
        str, typer.Option("--name", help="With --spec: name of the cluster.")
    ] = "train",
    fmt: SizeOutput = SizeFormat.TEXT,
) -> Exit:
    """Size a training run: layout, memory, time and cost.

    Nothing is looked up or made. Exit code 1 when the model fits on none of the machines.
    """
    known = words.catalog(catalog or [])
    wanted = [machine_type(known, word.strip()) for word in machine.split(",")]
    shape = words.model(model)
    length = int(words.count("--sequence", sequence, _MOST_SEQUENCE) or min(shape.sequence, 8192))
    work = Workload(
        model=shape,
        sequence=length,
        batch_tokens=int(words.count("--batch", batch, _MOST_TOKENS) or BATCH_TOKENS),
        tokens=words.count("--tokens", tokens, _MOST_TOKENS),
        deadline_s=words.deadline(deadline, tokens),
        precision=precision,
        method=method,
        lora_rank=lora_rank,
        margin=words.share(margin),
        token_bytes=token_bytes,
        read=None if storage_read is None else storage_read * _GIGA,
        write=None if storage_write is None else storage_write * _GIGA,
        oversubscription=oversubscription,
        leaf_nodes=leaf_nodes,
        measured=measured(from_cluster, [each.name for each in wanted]),
    )
    fitted = constants()
    plans = ranked(
        [plan(work, each, fitted, nodes=nodes, region=region or None) for each in wanted]
    )
    whys = {
        each.machine: explanation(work, known.machines[each.machine], each, fitted)
        for each in plans
        if explain
    }
    hall = Hall(pue=pue, rack_kw=rack_kw, kg_co2_per_kwh=co2)
    drawn = {each.machine: _power(known, each, hall) for each in plans if each.best}
    kept = None
    if spec is not None and plans[0].best is not None:
        kept = words.write(spec, name, plans[0], known)
    types = known.machines
    answer = Answer(
        work=work,
        plans=plans,
        constants=fitted,
        explained=whys,
        power=drawn,
        written=kept,
        room={each.machine: room(work, types[each.machine]) for each in plans},
        levers={
            each.machine: levers(work, types[each.machine], each.best, fitted)
            for each in plans
            if each.best
        },
        scaling={
            each.machine: scaling(work, types[each.machine], fitted, each.nodes)
            for each in plans
            if each.best and fmt in PAGES
        },
    )
    if fmt is SizeFormat.JSON:
        emit(document(plan_document(answer)))
    elif fmt in PAGES:
        emit(written(train_page(answer), fmt))
    else:
        say(answer_text(answer, stdout()))
    return Exit.OK if any(each.best for each in plans) else Exit.FAILED


@app.command("serve")
def serve(  # noqa: PLR0917  # typer reads the options from the parameters
    model: ModelWord,
    machine: MachineWords,
    requests: Annotated[
        float | None,
        typer.Option("--requests", min=0.001, max=1e6, help="Requests a second."),
    ] = None,
    users: Annotated[
        int | None, typer.Option("--users", min=1, max=10**8, help="Users, instead of a rate.")
    ] = None,
    every: Annotated[
        str,
        typer.Option(
            "--every", metavar="TIME", help="With --users: how often each sends a request."
        ),
    ] = "1m",
    input_tokens: Annotated[
        int, typer.Option("--input", min=1, max=10**6, help="Tokens of a prompt.")
    ] = 1024,
    output_tokens: Annotated[
        int, typer.Option("--output", min=1, max=10**6, help="Tokens of an answer.")
    ] = 256,
    ttft_ms: Annotated[
        float, typer.Option("--ttft-ms", min=1, max=10**6, help="p99 of the first token.")
    ] = 2000.0,
    tpot_ms: Annotated[
        float, typer.Option("--tpot-ms", min=1, max=10**5, help="Time of each further token.")
    ] = 50.0,
    precision: Annotated[
        PrecisionWord, typer.Option("--precision", help="Of weights, cache and arithmetic.")
    ] = "bf16",
    margin: Margin = f"{MARGIN:.0%}",
    region: Region = "",
    catalog: Catalogs = None,
    explain: Explain = False,
    spec: SpecFile = None,
    name: Annotated[
        str, typer.Option("--name", help="With --spec: name of the cluster.")
    ] = "serve",
    fmt: SizeOutput = SizeFormat.TEXT,
) -> Exit:
    """Size a service: replicas, latency, nodes and $ a token.

    Nothing is looked up or made. Exit code 1 when no machine can serve the model so.
    """
    if (requests is None) == (users is None):
        raise usage("give one of --requests and --users", "--requests 10")
    known = words.catalog(catalog or [])
    wanted = [machine_type(known, word.strip()) for word in machine.split(",")]
    load = Load(
        model=words.model(model),
        requests_per_s=requests or (users or 0) / words.seconds("--every", every),
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        first_token_s=ttft_ms / 1000,
        per_token_s=tpot_ms / 1000,
        precision=precision,
        margin=words.share(margin),
    )
    figures = serving_constants()
    plans = cheapest([serving_plan(load, each, figures, region or None) for each in wanted])
    kept = None
    if spec is not None and plans[0].replica is not None:
        kept = words.write(spec, name, plans[0], known)
    whys = {
        each.machine: serving_explanation(load, known.machines[each.machine], each, figures)
        for each in plans
        if explain
    }
    fits = [(each.machine, each.replica) for each in plans if each.replica and fmt in PAGES]
    answer = ServingAnswer(
        load=load,
        plans=plans,
        constants=figures,
        explanation=whys,
        written=kept,
        by_batch={name: by_batch(load, known.machines[name], figures, one) for name, one in fits},
        swings={name: swings(load, known.machines[name], figures, one) for name, one in fits},
    )
    if fmt is SizeFormat.JSON:
        emit(document(answer))
    elif fmt in PAGES:
        emit(written(serve_page(answer), fmt))
    else:
        say(serving_text(answer, stdout()))
    return Exit.OK if any(each.replica for each in plans) else Exit.FAILED


def ranked(plans: list[Plan]) -> list[Plan]:
    """Return plans in the order of their worth: in time, then by cost, then by days."""

    def worth(each: Plan) -> tuple[bool, bool, float, float]:
        run = each.run
        late = run is not None and run.meets_deadline is False
        cost = run.usd if run is not None else each.usd_per_hour
        days = run.days if run is not None else -(each.best.tokens_per_s if each.best else 0.0)
        return each.best is None, late, float("inf") if cost is None else cost, days

    return sorted(plans, key=worth)


def cheapest(plans: list[ServingPlan]) -> list[ServingPlan]:
    """Return plans in the order of their cost; what serves nothing comes last."""

    def worth(each: ServingPlan) -> tuple[bool, float, int]:
        usd = each.usd_per_hour
        return each.replica is None, float("inf") if usd is None else usd, each.nodes

    return sorted(plans, key=worth)


def _power(catalog: Catalog, best: Plan, hall: Hall) -> Power | None:
    """Return what a plan draws, at the place of its price."""
    machine = catalog.machines[best.machine]
    return power(
        machine,
        best.nodes,
        hall=hall,
        days=None if best.run is None else best.run.days,
        facts=catalog.providers.get(machine.sites[0]),
        region=best.price.region if best.price else None,
    )
