"""`gcluster size`: which machines a model needs, before there is a spec."""

import re
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import typer

from ...inventory.size.constants import constants
from ...inventory.size.explanation import explanation, serving_explanation
from ...inventory.size.hugging_face import ConfigError, read_config
from ...inventory.size.model import Model, presets
from ...inventory.size.power import Hall, Power, power
from ...inventory.size.serving import Load, ServingPlan, serving_constants, serving_plan
from ...inventory.size.training import BATCH_TOKENS, MARGIN, Plan, Workload, plan
from ...lifecycle.cluster.outcome import Exit, LifecycleError
from ...schemas.catalog import Catalog, CatalogError, load_catalog
from ...schemas.cost.bill import bill
from ...schemas.diagnostics import closest, listing
from ...schemas.load import load_text
from ...schemas.spec.units import Duration, Percent
from ..app import group
from ..console import emit, say, stdout
from ..new_file import write_new
from ..options import Format, OutputFormat
from ..render.document import document
from ..render.size.serve import ServingAnswer, serving_text
from ..render.size.train import Answer, answer_text, plan_document
from ..render.spec.starter import MOST_NODES, NO_REGION, Wish, starter_spec
from ..size_own import machine_type, own, usage

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
_COUNT = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([kKMGBT]?)")
_FACTORS = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9, "T": 1e12}
_MOST_TOKENS = 1e16
_MOST_SEQUENCE = 2**24
_MOST_MODEL_BYTES = 2**20


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
    catalog: Catalogs = None,
    explain: Explain = False,
    spec: SpecFile = None,
    name: Annotated[
        str, typer.Option("--name", help="With --spec: name of the cluster.")
    ] = "train",
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """Size a training run: layout, memory, time and cost.

    Nothing is looked up or made. Exit code 1 when the model fits on none of the machines.
    """
    known = _catalog(catalog or [])
    wanted = [machine_type(known, word.strip()) for word in machine.split(",")]
    shape = _model(model)
    length = int(_count("--sequence", sequence, _MOST_SEQUENCE) or min(shape.sequence, 8192))
    work = Workload(
        model=shape,
        sequence=length,
        batch_tokens=int(_count("--batch", batch, _MOST_TOKENS) or BATCH_TOKENS),
        tokens=_count("--tokens", tokens, _MOST_TOKENS),
        deadline_s=_deadline(deadline, tokens),
        precision=precision,
        method=method,
        lora_rank=lora_rank,
        margin=_share(margin),
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
    written = None
    if spec is not None and plans[0].best is not None:
        written = _write(spec, name, plans[0], known)
    answer = Answer(
        work=work, plans=plans, constants=fitted, explained=whys, power=drawn, written=written
    )
    if fmt is Format.JSON:
        emit(document(plan_document(answer)))
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
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """Size a service: replicas, latency, nodes and $ a token.

    Nothing is looked up or made. Exit code 1 when no machine can serve the model so.
    """
    if (requests is None) == (users is None):
        raise usage("give one of --requests and --users", "--requests 10")
    known = _catalog(catalog or [])
    wanted = [machine_type(known, word.strip()) for word in machine.split(",")]
    load = Load(
        model=_model(model),
        requests_per_s=requests or (users or 0) / _seconds("--every", every),
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        first_token_s=ttft_ms / 1000,
        per_token_s=tpot_ms / 1000,
        precision=precision,
        margin=_share(margin),
    )
    figures = serving_constants()
    plans = cheapest([serving_plan(load, each, figures, region or None) for each in wanted])
    written = None
    if spec is not None and plans[0].replica is not None:
        written = _write(spec, name, plans[0], known)
    whys = {
        each.machine: serving_explanation(load, known.machines[each.machine], each, figures)
        for each in plans
        if explain
    }
    answer = ServingAnswer(
        load=load, plans=plans, constants=figures, explanation=whys, written=written
    )
    if fmt is Format.JSON:
        emit(document(answer))
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


def _write(path: Path, name: str, best: Plan | ServingPlan, catalog: Catalog) -> dict[str, Any]:
    """Write the spec of a plan; return what it costs, as `gcluster cost` says."""
    provider = catalog.machines[best.machine].sites[0]
    if provider in NO_REGION and best.nodes > MOST_NODES:
        raise usage(
            f"--spec: {best.nodes:,} hosts are more than the {MOST_NODES} that a first spec lists",
            "gcluster init --provider bare-metal writes one to extend",
        )
    region = (best.price.region if best.price else None) or ""
    text = starter_spec(
        Wish(provider=provider, name=name, machine=best.machine, nodes=best.nodes, region=region)
    )
    loaded = load_text(text, file=str(path))
    errors = [each for each in loaded.diagnostics if each.is_error]
    if loaded.spec is None or errors:
        raise LifecycleError(*errors, exit_code=Exit.SPEC)
    costs = bill(loaded.spec, catalog)
    write_new(path, text, hint="give another path: --spec FILE")
    return {
        "path": str(path),
        "usd_per_hour": costs.totals.hour.usd,
        "pool_usd_per_hour": next(
            (pool.usd_per_hour for pool in costs.pools if pool.machine == best.machine), None
        ),
    }


def _catalog(files: list[Path]) -> Catalog:
    try:
        return load_catalog(files)
    except CatalogError as error:
        raise LifecycleError(*error.diagnostics, exit_code=Exit.SPEC) from error


def _model(word: str) -> Model:
    """Return a model by its name, or from a config.json."""
    known = presets()
    if word in known:
        return known[word]
    path = Path(word)
    if not path.suffix and "/" not in word:
        near = closest(word, known)
        hint = f'did you mean "{near}"? ' if near else ""
        raise usage(
            f'no model is called "{word}"',
            f"{hint}known: {listing(known, limit=40)}; or the path of a config.json",
        )
    try:
        with path.open("rb") as file:
            content = file.read(
                _MOST_MODEL_BYTES
            )  # a longer one ends in the middle, and is refused
        return read_config(content, path.parent.name or path.stem)
    except (OSError, ConfigError) as error:
        why = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
        raise usage(
            f"{word} can't be read as a model: {why}",
            "a config.json as Hugging Face has it: hidden_size, num_hidden_layers, ...",
        ) from error


def _count(option: str, text: str, most: float) -> float | None:
    """Read "1.4T", "500B" or 8192; None where nothing is said."""
    if not text:
        return None
    found = _COUNT.fullmatch(text.strip())
    value = float(found[1]) * _FACTORS[found[2]] if found else 0.0
    if not 1 <= value <= most:
        raise usage(f'{option} "{text}" is no count of tokens', "such as 1.4T, 500B, 4M or 8192")
    return value


def _deadline(text: str, tokens: str) -> float | None:
    if not text:
        return None
    if not tokens:
        raise usage("--deadline needs --tokens: how much is to be done by then", "--tokens 1.4T")
    return _seconds("--deadline", text)


def _seconds(option: str, text: str) -> float:
    try:
        seconds = float(Duration.parse(text).value)
    except ValueError:
        seconds = 0.0
    if seconds <= 0:
        raise usage(f'{option} "{text}" is no length of time', "such as 30d, 12h or 30s")
    return seconds


def _share(text: str) -> float:
    try:
        share = Percent.parse(text).value if text.endswith("%") else float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share < 1:
        raise usage(f'--margin "{text}" is no part of a GPU\'s memory', "such as 5% or 0.05")
    return share
