"""`gcluster schema`: the spec language for editors and other programs."""

# ruff: noqa: PLC0415  # imported when the verb runs: help and other verbs need none of it

from gcluster.cli.render.output import say
from gcluster.lifecycle.outcome import Exit


def command() -> Exit:
    """Print the JSON Schema of the spec, for editors.

    gcluster schema > cluster.schema.json, and in the first line of a spec:
    # yaml-language-server: $schema=cluster.schema.json
    """
    from gcluster.schemas.json_schema import render

    say(render().rstrip("\n"))
    return Exit.OK
