"""The command line as typer knows it. A verb is imported, as a whole, when it is called."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from .. import __version__
from . import ending
from .commands import BY_NAME, SECTIONS, VERBS
from .console import say

CONTEXT = {"help_option_names": ["-h", "--help"]}


class Suggesting(TyperGroup):
    """A group that suggests a name where an unknown one is given.

    The context is typed Any: typer carries its own copy of click and keeps its types private.
    """

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command; an unknown one gets a suggestion."""
        name, known = args[0], self.list_commands(ctx)
        if name not in known and not name.startswith("-") and not ctx.resilient_parsing:
            near = get_close_matches(name, known, n=1)
            suggestion = f': did you mean "{near[0]}"?' if near else ""
            what = "verb" if ctx.parent is None else ctx.command_path
            ctx.fail(f'there is no {what} "{name}"{suggestion}')
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands with their whole line of help, however narrow the terminal."""
        names = self.list_commands(ctx)
        with formatter.section("Commands"):
            found = sorted(self.commands.items(), key=lambda item: names.index(item[0]))
            formatter.write_dl([(name, each.get_short_help_str(100)) for name, each in found])


class Verbs(Suggesting):
    """All verbs in sections. An end of any kind becomes a message and an exit code here."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002  # the signature is typer's
        """Return every verb, in the order of the help; imports none."""
        return list(BY_NAME)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002  # the signature is typer's
        """Import the module of the verb and return its command; None for no such verb."""
        if cmd_name not in BY_NAME:
            return None
        if cmd_name not in self.commands:
            module = import_module(BY_NAME[cmd_name].module, __package__)
            verb = getattr(module, "app", None) or single(cmd_name, module.command)
            self.commands[cmd_name] = typer.main.get_command(verb)
        return self.commands[cmd_name]

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002  # the signature is typer's
        """Write the verbs with their one line of help, section by section; imports none."""
        for section in SECTIONS:
            with formatter.section(section):
                formatter.write_dl([(v.name, v.help) for v in VERBS if v.section == section])

    def invoke(self, ctx: Any) -> Any:
        """Run the verb; its errors become its exit code."""
        with ending.as_exit_code(ctx) as end:
            end.code = super().invoke(ctx)
        return end.code

    def main(self, args: Sequence[str] | None = None, *rest: Any, **extra: Any) -> None:
        """Parse, run and exit with the code that the project's table gives to this end."""
        words = list(sys.argv[1:] if args is None else args)
        extra |= {"standalone_mode": False, "obj": words}
        sys.exit(ending.run(lambda: super(Verbs, self).main(words, *rest, **extra)))


def group(name: str) -> typer.Typer:
    """Return the app of a verb that has commands of its own, such as `burst simulate`."""
    return typer.Typer(
        name=name,
        cls=Suggesting,
        add_completion=False,
        rich_markup_mode=None,
        context_settings=CONTEXT,
        no_args_is_help=True,
    )


def single(
    name: str, command: Callable[..., Any], cls: type[TyperCommand] | None = None
) -> typer.Typer:
    """Return the app of a verb that is one command."""
    verb = typer.Typer(add_completion=False, rich_markup_mode=None)
    verb.command(name, cls=cls, context_settings=CONTEXT)(command)
    return verb


app = typer.Typer(
    name="gcluster",
    cls=Verbs,
    context_settings=CONTEXT,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    epilog="Exit codes: 0 ok, 1 failed, 2 the spec is wrong, 3 changes pending, 4 refused, "
    "5 leftovers remain, 6 lock held, 64 usage, 130 interrupted.",
)


def _version(wanted: bool) -> None:
    if wanted:
        say(f"gcluster {__version__}")
        raise typer.Exit


@app.callback()
def gcluster(
    version: Annotated[  # its callback does the work
        bool,
        typer.Option("--version", help="Print the version.", callback=_version, is_eager=True),
    ] = False,
) -> None:
    """One typed spec to a running GPU cluster that has passed its multi-node AllReduce."""


def command() -> Any:
    """Return the group of all verbs, none of them imported."""
    return typer.main.get_command(app)
