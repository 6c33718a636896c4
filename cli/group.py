"""The command group that imports a verb's module only when that verb is asked for."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from importlib import import_module
from types import ModuleType
from typing import Any

import typer
from typer.core import TyperGroup

from . import ending
from .verbs import BY_NAME, QUICK, SECTIONS, VERBS

CONTEXT = {"help_option_names": ["-h", "--help"]}


class Verbs(TyperGroup):
    """All verbs in sections. An end of any kind becomes a message and an exit code here.

    The context is typed Any: typer carries its own copy of click and keeps its types private.
    """

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002  # the signature is typer's
        """Return every verb, in the order of the help."""
        return [verb.name for verb in VERBS]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002  # the signature is typer's
        """Import the verb's module and make its command; None for an unknown verb."""
        if cmd_name in BY_NAME and cmd_name not in self.commands:
            self.commands[cmd_name] = make_command(cmd_name)
        return self.commands.get(cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002  # the signature is typer's
        """Write the verbs with their one line of help, section by section; imports none."""
        for section in SECTIONS:
            with formatter.section(section):
                formatter.write_dl([(v.name, v.help) for v in VERBS if v.section == section])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the verb; an unknown one gets a suggestion."""
        _refuse_unknown(ctx, args[0], BY_NAME, "verb")
        return super().resolve_command(ctx, args)

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


class Words(TyperGroup):
    """The words behind a verb that has several, such as `burst simulate`; imported when asked for.

    The verb is a folder of `cli/`: its `WORDS` say (word, one line of help), in the order of the
    help, and each word has a module there, - for a hyphen as _, with its `command`. Where `ALONE`
    is true, the verb does something without a word too.
    """

    verb: str
    words: dict[str, str]

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002  # the signature is typer's
        """Return every word, in the order of the help."""
        return list(self.words)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002  # the signature is typer's
        """Import the word's module and make its command; None for an unknown word."""
        if cmd_name in self.words and cmd_name not in self.commands:
            module = import_module(f"gcluster.cli.{self.verb}.{cmd_name.replace('-', '_')}")
            self.commands[cmd_name] = _command(cmd_name, module, self.words[cmd_name])
        return self.commands.get(cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002  # the signature is typer's
        """Write the words with their one line of help; imports none."""
        with formatter.section("Words"):
            formatter.write_dl(list(self.words.items()))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the word; an unknown one gets a suggestion."""
        _refuse_unknown(ctx, args[0], self.words, f"gcluster {self.verb}")
        return super().resolve_command(ctx, args)


def _refuse_unknown(ctx: Any, name: str, known: Iterable[str], what: str) -> None:
    if name in known or name.startswith("-") or ctx.resilient_parsing:
        return
    near = get_close_matches(name, known, n=1)
    meant = f': did you mean "{near[0]}"?' if near else ""
    ctx.fail(f'there is no {what} "{name}"{meant}')


def make_command(name: str) -> Any:
    """Import `cli/<name>` and turn its `command` into a typer command, or a group of words."""
    if name not in QUICK:
        gc.enable()  # main switched it off for the start
    module = import_module(f"gcluster.cli.{name}")
    if not hasattr(module, "WORDS"):
        return _command(name, module, BY_NAME[name].help)
    app = typer.Typer(
        cls=Words,
        name=name,
        add_completion=False,
        rich_markup_mode=None,
        context_settings=CONTEXT,
        no_args_is_help=True,
    )
    app.callback(invoke_without_command=getattr(module, "ALONE", False))(module.command)
    group: Any = typer.main.get_command(app)
    group.verb, group.words = name, dict(module.WORDS)
    return group


def _command(name: str, module: ModuleType, help_line: str) -> Any:
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(
        name,
        cls=getattr(module, "COMMAND_CLASS", None),
        context_settings=CONTEXT,
        short_help=help_line,
    )(module.command)
    return typer.main.get_command(app)
