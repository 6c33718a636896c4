"""`gcluster smoke`: the AllReduce gate by itself."""

# ruff: noqa: PLC0415  # imported when the verb runs: help and other verbs need none of it

from gcluster.cli.options import Format, OutputFormat, Target
from gcluster.cli.render.output import say
from gcluster.lifecycle.outcome import Exit


def command(cluster: Target, fmt: OutputFormat = Format.TEXT) -> Exit:
    """Run the AllReduce over all nodes and judge it.

    Exit code 4 on a wrong number, a missing rank, a log that can't be read, or below the floor.
    """
    from gcluster.cli.render.document import document
    from gcluster.cli.render.progress import open_progress
    from gcluster.cli.render.smoke import smoke_text
    from gcluster.cli.render.surface import stdout
    from gcluster.lifecycle.cluster import open_cluster
    from gcluster.lifecycle.gate import run_gate

    opened = open_cluster(cluster, running=True)
    with open_progress(fmt.value) as report:
        result = run_gate(opened, report)
    say(
        document(result) if fmt is Format.JSON else smoke_text(result.verdict, result.log, stdout())
    )
    return Exit.OK if result.passed else Exit.REFUSED
