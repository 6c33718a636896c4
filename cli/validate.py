"""`gcluster validate`: everything that is wrong with specs, at once, before a person waits."""

# ruff: noqa: PLC0415  # imported when the verb runs: help and other verbs need none of it

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from gcluster.cli.options import Format, OutputFormat, complete_spec
from gcluster.cli.render.output import say
from gcluster.lifecycle.outcome import Exit

if TYPE_CHECKING:
    from gcluster.schemas.load import Loaded
    from gcluster.schemas.spec import ClusterSpec

STDIN_LIMIT = 8 * 2**20 + 1
"""Bytes read from standard input: one more than a spec may have, so that the limit is told."""


def command(
    specs: Annotated[
        list[str],
        typer.Argument(
            metavar="SPEC...", help='Paths of specs; "-" is stdin.', autocompletion=complete_spec
        ),
    ],
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """Check specs and say everything that is wrong with them.

    Nothing is touched. Exit code 2 when a spec has errors.
    """
    results = [_load(spec) for spec in specs]
    if fmt is Format.JSON:
        from gcluster.cli.render.document import document

        say(document(_report(results)))
    else:
        _say(results)
    return Exit.SPEC if any(result.spec is None for result in results) else Exit.OK


def _load(spec: str) -> "Loaded":
    from pathlib import Path

    from gcluster.schemas.load import load, load_text

    if spec == "-":
        return load_text(sys.stdin.buffer.read(STDIN_LIMIT), file="<stdin>")
    return load(Path(spec))


def _say(results: "list[Loaded]") -> None:
    found = [diagnostic for result in results for diagnostic in result.diagnostics]
    if found:
        from gcluster.cli.render.diagnostics import diagnostics_text, summary_line
        from gcluster.cli.render.surface import stdout

        sources = {result.file: result.text for result in results}
        say(diagnostics_text(found, stdout(), sources))
        say(f"\n{summary_line(found)}")
    for result in results:
        if result.spec is not None:
            spec = result.spec
            pools, hosts = len(spec.pools), host_count(spec)
            say(f"ok: {spec.name}: {_counted(pools, 'pool')}, {_counted(hosts, 'host')}")


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def host_count(spec: "ClusterSpec") -> int:
    """Return how many machines the spec asks for."""
    count = 0
    for name, site in spec.sites.items():
        if site.__struct_config__.tag == "bare-metal":
            from gcluster.inventory.bare_metal import bare_metal_hosts

            count += len(bare_metal_hosts(spec, name))
        else:
            pools = [pool for pool in spec.pools.values() if pool.site == name]
            count += sum(1 if pool.count is None else pool.count for pool in pools)
    return count


def _report(results: "list[Loaded]") -> dict[str, object]:
    return {
        "ok": all(result.spec is not None for result in results),
        "specs": [
            {
                "file": result.file,
                "ok": result.spec is not None,
                "cluster": result.spec and result.spec.name,
                "pools": result.spec and len(result.spec.pools),
                "hosts": result.spec and host_count(result.spec),
                "diagnostics": result.diagnostics,
            }
            for result in results
        ],
    }
