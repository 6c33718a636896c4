"""`gcluster software`: the tested sets, and which one each pool of a spec gets and why."""

from pathlib import Path
from typing import Annotated

import typer

from ...lifecycle.cluster.cluster import SpecError
from ...lifecycle.cluster.outcome import Exit, failure
from ...schemas.catalog import load_catalog
from ...schemas.diagnostics import closest, listing
from ...schemas.load import load
from ...schemas.spec import ClusterSpec
from ...schemas.stack import Resolved, load_lock
from ...schemas.stack.pools import resolved_pools
from ..console import stdout
from ..options import Format, OutputFormat, complete_spec
from ..render.document import answer
from ..render.spec.software import pools_text, sets_text


def command(
    spec: Annotated[
        str | None,
        typer.Argument(
            metavar="[SPEC]",
            help="Show what each pool of this spec gets; without one: the tested sets.",
            autocompletion=complete_spec,
            show_default=False,
        ),
    ] = None,
    pool: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only this pool of the spec.")
    ] = None,
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """Show tested version combinations and those of a spec.

    Nothing is touched. Exit code 2 when the spec has errors.
    """
    if spec is None:
        if pool is not None:
            raise _unknown(f'--pool "{pool}" needs a spec', "gcluster software SPEC --pool NAME")
        sets = load_lock().sets
        answer(fmt, {"sets": sets}, lambda: sets_text(load_lock(), stdout()))
        return Exit.OK
    resolved = _resolved(_spec(spec), pool)
    answer(fmt, {"pools": resolved}, lambda: pools_text(resolved, stdout()))
    return Exit.OK


def _spec(path: str) -> "tuple[ClusterSpec, tuple[Path, ...]]":

    loaded = load(Path(path))
    if loaded.spec is None:
        raise SpecError(loaded)
    return loaded.spec, loaded.catalogs


def _resolved(
    loaded: "tuple[ClusterSpec, tuple[Path, ...]]", pool: str | None
) -> dict[str, Resolved]:

    spec, catalogs = loaded
    if pool is not None and pool not in spec.pools:
        near = closest(pool, spec.pools)
        hint = f'did you mean "{near}"?' if near else f"pools: {listing(spec.pools)}"
        raise _unknown(f'{spec.name} has no pool "{pool}"', hint)
    resolved = resolved_pools(spec, load_catalog(catalogs))
    return resolved if pool is None else {pool: resolved[pool]}


def _unknown(summary: str, hint: str) -> Exception:

    return failure("GC941", summary, hint=hint, exit_code=Exit.USAGE)
