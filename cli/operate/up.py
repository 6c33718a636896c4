"""`gcluster up`: from a spec to a running cluster that has passed its AllReduce."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from ...lifecycle.bundle.active import Bundle
from ...lifecycle.cluster.cluster import open_cluster
from ...lifecycle.cluster.outcome import Exit, failure
from ...lifecycle.cluster.progress import StageFinished
from ...lifecycle.cluster.state_upgrade import upgrade_state
from ...lifecycle.planning.changes import Plan
from ...lifecycle.planning.plan_file import PlanFile, read_plan
from ...lifecycle.planning.purchase.decision import OptionOverrides
from ...lifecycle.state.store import OldFormatError
from ...lifecycle.up.phase import UpResult
from ...lifecycle.up.up import up
from ..console import ask, ask_name, say, stdout
from ..options import Format, OutputFormat, Target, Yes
from ..render.document import answer
from ..render.operate.plan import plan_text, purchase
from ..render.operate.up import up_text
from ..render.progress import LineProgress, open_progress


def command(  # noqa: PLR0917  # typer reads the options from the parameters
    cluster: Target,
    yes: Yes = False,
    requeue_jobs: Annotated[
        bool,
        typer.Option(
            "--requeue-jobs",
            help="Put jobs on nodes that must be drained back in line; don't wait for their end.",
        ),
    ] = False,
    buy_capacity_block: Annotated[
        list[str] | None,
        typer.Option(
            "--buy-capacity-block",
            metavar="POOL",
            help="Let a capacity block be bought for this pool: paid at once, not refundable.",
        ),
    ] = None,
    from_first_option: Annotated[
        list[str] | None,
        typer.Option(
            "--from-first-option",
            metavar="POOL",
            help="Buy this pool again from the first option of its market: its nodes are replaced.",
        ),
    ] = None,
    bundle: Annotated[
        Path | None,
        typer.Option(
            "--bundle", metavar="DIR", help="Let the nodes take everything from this bundle alone."
        ),
    ] = None,
    bundle_key: Annotated[
        str | None,
        typer.Option(
            "--bundle-key",
            metavar="FINGERPRINT",
            help="With --bundle: the one key that may have signed it.",
        ),
    ] = None,
    no_bundle: Annotated[
        bool,
        typer.Option("--no-bundle", help="Let the nodes take packages from the sources again."),
    ] = False,
    plan: Annotated[
        Path | None,
        typer.Option(
            "--plan",
            metavar="FILE",
            help="Apply exactly this plan, without confirmation (made by plan --out).",
        ),
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            "--allow",
            metavar="THING",
            help="Let this happen, which a guard holds back, as the refusal names it: "
            "controller:head01, storage:scratch, login:login01, pool:train, budget.",
        ),
    ] = None,
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """Create or change a cluster until it passes the AllReduce.

    Shows what would change and asks for confirmation. Kill it at any point and run it again: it
    goes on. Exit code 4 when the AllReduce fails, 3 when nodes in use were left as they are.
    """
    began = time.monotonic()
    flags = (requeue_jobs, buy_capacity_block, from_first_option, bundle, bundle_key, no_bundle)
    approved = _approved(plan, alone=not any(flags))
    buys = frozenset(buy_capacity_block or ())

    def bring(again: frozenset[str]) -> UpResult:
        opened = open_cluster(cluster, again=again)
        with open_progress(fmt.value) as report:
            seconds = time.monotonic() - began
            report(StageFinished(name="spec", ok=True, summary="0 errors", seconds=seconds))
            return up(
                opened,
                report,
                confirm=_yes if yes else _asker(report, fmt, buys),
                wishes=OptionOverrides(buy=buys, again=again),
                requeue_jobs=requeue_jobs,
                bundle=_bundle(bundle, bundle_key, gone=no_bundle),
                approved=approved,
                allow=frozenset(allow or ()),
            )

    again = frozenset(from_first_option or ())
    try:
        result = bring(again)
    except OldFormatError as old:
        _upgrade(cluster, old, fmt, yes=yes)
        result = bring(again)
    while result.next_sites:
        again -= result.next_sites.keys()
        result = bring(again)
    answer(fmt, result, lambda: up_text(result, cluster, stdout()))
    return result.exit_code


def _upgrade(target: str, old: OldFormatError, fmt: Format, *, yes: bool) -> None:
    """Have the state of an older gcluster rewritten, once that is agreed to."""

    def confirm(_: int) -> bool:
        question = "rewrite the state for this version?"
        return yes or ask(question, possible=fmt is Format.TEXT)

    if fmt is Format.TEXT:
        say(old.diagnostics[0].summary)
    upgrade_state(target, confirm=confirm)


def _bundle(folder: Path | None, key: str | None, *, gone: bool) -> Bundle | None:
    """Return what was said of a bundle; None: nothing, so that it stays as it was."""
    if (gone and folder is not None) or (key is not None and folder is None):
        summary = "--bundle-key goes with --bundle DIR, and --no-bundle with neither"
        raise failure("GC941", summary, hint="gcluster up --help", exit_code=Exit.USAGE)
    return None if folder is None and not gone else Bundle(folder=folder, trusted=key)


def _approved(plan: Path | None, *, alone: bool) -> PlanFile | None:
    """Read the approved plan; options that change a plan can't be given with it."""
    if plan is None:
        return None
    if not alone:
        raise failure(
            "GC941",
            "--plan goes with none of the options that change what is done",
            hint="what was approved is done as it is: gcluster up SPEC --plan FILE",
            exit_code=Exit.USAGE,
        )

    return read_plan(plan)


def _yes(_: Plan) -> bool:
    return True


def _asker(report: LineProgress, fmt: Format, buys: frozenset[str]) -> Callable[[Plan], bool]:
    """Return what shows a plan and prompts; in JSON neither.

    A purchase is confirmed by typing the pool's name, with its price.
    """

    def confirm(plan: Plan) -> bool:

        report.pause()
        if fmt is Format.TEXT:
            say(f"{plan_text(plan, stdout())}\n")
        possible = fmt is Format.TEXT
        return all(
            ask_name(question, pool, possible=possible) for pool, question in _purchases(plan, buys)
        ) and ask("do this?", possible=possible)

    return confirm


def _purchases(plan: Plan, buys: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Yield (pool, prompt) for each capacity block that may be bought."""
    for fallback_list in plan.fallback_lists:
        for option in fallback_list.purchase_options:
            if (
                fallback_list.pool in buys
                and not fallback_list.after
                and option.buy_hours is not None
                and option.state != "stands"
            ):
                what = f"a capacity block of {fallback_list.count} nodes: {purchase(option)}"
                yield fallback_list.pool, f"pool {fallback_list.pool} may buy {what}"
