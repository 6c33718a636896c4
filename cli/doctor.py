"""`gcluster doctor`: what this machine lacks and the command that installs it."""

# ruff: noqa: PLC0415  # imported when the verb runs: help and other verbs need none of it

from gcluster.cli.options import Format, OutputFormat
from gcluster.cli.render.output import say
from gcluster.lifecycle.outcome import Exit


def command(fmt: OutputFormat = Format.TEXT) -> Exit:
    """Say what this machine lacks and the command that installs it.

    Nothing is run or changed. Exit code 1 when a local cluster can't be brought up here.
    """
    from gcluster.cli.render.doctor import doctor_report, doctor_text
    from gcluster.cli.render.document import document
    from gcluster.cli.render.surface import stdout
    from gcluster.lifecycle.doctor import needs, this_machine

    machine = this_machine()
    found = needs(machine)
    if fmt is Format.JSON:
        say(document(doctor_report(machine, found)))
    else:
        say(doctor_text(machine, found, stdout()))
    return Exit.FAILED if any(n.required and not n.present for n in found) else Exit.OK
