"""`gcluster rotate munge`: another MUNGE key, with no job lost."""

# ruff: noqa: PLC0415  # imported when the verb runs: help and other verbs need none of it

from gcluster.cli.options import Format, OutputFormat, Target
from gcluster.cli.render.output import say
from gcluster.lifecycle.outcome import Exit


def command(cluster: Target, fmt: OutputFormat = Format.TEXT) -> Exit:
    """Give every machine another MUNGE key; running jobs go on.

    For the seconds of the change commands of Slurm may be refused. Exit code 3 when a machine could
    not be reached: the next up gives it the new key.
    """
    from gcluster.cli.render.document import document
    from gcluster.cli.render.operations import rotated_text
    from gcluster.cli.render.progress import open_progress
    from gcluster.lifecycle.cluster import open_cluster
    from gcluster.lifecycle.operations.rotate_munge import rotate_munge
    from gcluster.lifecycle.run import Run
    from gcluster.lifecycle.sites import existing_hosts
    from gcluster.lifecycle.ssh import SshSession
    from gcluster.lifecycle.state import acquire

    opened = open_cluster(cluster, running=True)
    hosts = existing_hosts(opened)
    opened.identify()
    with (
        open_progress(fmt.value) as report,
        SshSession(opened.workdir) as session,
        acquire(opened.store, tuple(opened.spec.sites), reason="rotate munge") as lock,
        Run(opened, "rotate munge", lock) as run,
    ):
        result = rotate_munge(hosts, session, opened.vault, report)
        run.finish(result.exit_code)
    say(document(result) if fmt is Format.JSON else rotated_text(result))
    return result.exit_code
