"""`gcluster rotate encryption`: all stored secrets encrypted anew, as the spec says."""

# ruff: noqa: PLC0415  # imported when the verb runs: help and other verbs need none of it

from ...lifecycle.outcome import Exit
from ..options import Format, OutputFormat, Target
from ..render.document import document
from ..render.operations import rotated_encryption_text
from ..render.output import say
from ..render.progress import open_progress


def command(cluster: Target, fmt: OutputFormat = Format.TEXT) -> Exit:
    """Encrypt all stored secrets anew, as secrets: of the spec says.

    They get a new data key, which the provider of the spec encrypts: another one, or the same. The
    old provider is needed once more. No host is asked or changed. Killed half-way, run it again.
    """
    from ...lifecycle.cluster import open_cluster
    from ...lifecycle.run import Run
    from ...lifecycle.secrets.encryption import rotate_encryption
    from ...lifecycle.state import acquire

    opened = open_cluster(cluster)
    applied = opened.applied_spec or opened.spec
    opened.identify()
    sites = tuple({*applied.sites, *opened.spec.sites})
    with (
        open_progress(fmt.value) as report,
        acquire(opened.store, sites, reason="rotate encryption") as lock,
        Run(opened, "rotate encryption", lock) as run,
    ):
        result = rotate_encryption(run, report)
        run.finish(result.exit_code)
    say(document(result) if fmt is Format.JSON else rotated_encryption_text(result))
    return result.exit_code
