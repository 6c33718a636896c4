"""What bounds the loops of an expression beyond the library's own limits.

The library counts the rounds of loops, but not what one round costs: a value that doubles in each
loop, or a whole list compared in each round. It has no option for this and no time limit, so
the text is looked at: its words and brackets, after the library has compiled it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from math import prod

import msgspec

from .shape import Shape

MOST_GROWTH = 1_000
"""Most that the uses of the loops' variables may give when multiplied."""
_MACROS = frozenset({"all", "exists", "exists_one", "filter", "map"})
_TOKEN = re.compile(
    r"""
    (?P<text> [bB]?[rR][bB]? (?: \"{3}.*?\"{3} | '{3}.*?'{3} | "[^"\n]*" | '[^'\n]*' )
            | [bB]? (?: \"{3}(?:\\.|.)*?\"{3} | '{3}(?:\\.|.)*?'{3}
                      | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' ) )
  | (?P<comment> //[^\n]* )
  | (?P<word> [A-Za-z_]\w* )
  | \d[\w.]* | [=!<>]= | && | \|\| | \S
    """,
    re.VERBOSE | re.DOTALL,
)


class _Loop(msgspec.Struct, frozen=True):
    """A macro over a list or map; its body is the tokens from `start` to before `end`."""

    variable: str
    start: int
    end: int


def too_costly(text: str, variables: Mapping[str, Shape]) -> tuple[str, str] | None:
    """Return why an expression that compiles may take too long, and a hint; None if it may not."""
    tokens = [match[0] for match in _TOKEN.finditer(text) if not match["comment"]]
    loops = list(_loops(tokens))
    if prod(max(1, _uses(tokens, loop, loops)) for loop in loops) > MOST_GROWTH:
        hint = "use each loop's variable less often, or make two policies of it"
        return "the loops of this could grow too large", hint
    if any(_takes_whole_list(tokens, loop, variables) for loop in loops):
        summary = "a loop compares, joins or searches whole lists in each round"
        return summary, "compare single values, such as the items' names"
    return None


def _loops(tokens: Sequence[str]) -> Iterator[_Loop]:
    """Yield the loops in the order of the text, outer before inner."""
    for index in range(1, len(tokens) - 3):
        before, name, bracket, variable, comma = tokens[index - 1 : index + 4]
        if before == "." and name in _MACROS and bracket == "(" and comma == ",":
            yield _Loop(variable, index + 4, _closing(tokens, index + 1))


def _closing(tokens: Sequence[str], opening: int) -> int:
    """Return where the bracket that opens at a token is closed."""
    depth = 0
    for index in range(opening, len(tokens)):
        depth += (tokens[index] in {"(", "[", "{"}) - (tokens[index] in {")", "]", "}"})
        if depth == 0:
            return index
    return len(tokens)


def _uses(tokens: Sequence[str], loop: _Loop, loops: Sequence[_Loop]) -> int:
    """Count how often a loop names its variable, inner loops that take the name over left out."""
    inner = [
        range(other.start, other.end)
        for other in loops
        if loop.start <= other.start < loop.end and other.variable == loop.variable
    ]
    return sum(
        tokens[index] == loop.variable and tokens[index - 1] != "."
        for index in range(loop.start, loop.end)
        if not any(index in other for other in inner if other.start != loop.start)
    )


def _takes_whole_list(tokens: Sequence[str], loop: _Loop, variables: Mapping[str, Shape]) -> bool:
    """Say whether a round names a list or map of items as a whole; its size may be used."""
    for index in range(loop.start, loop.end):
        shape = variables.get(tokens[index])
        if shape is None or tokens[index - 1] == "." or tokens[index] == loop.variable:
            continue
        end = index + 1
        while shape is not None and end + 1 < len(tokens) and tokens[end] == ".":
            if end + 2 < len(tokens) and tokens[end + 2] == "(":  # a function of the list
                break
            shape = shape.field(tokens[end + 1])
            end += 2
        followed = tokens[end : end + 1]
        asked_for_size = tokens[index - 2 : index] == ["size", "("]
        is_key_of_map = shape is not None and shape.is_map and tokens[index - 1] == "in"
        if shape is None or followed in (["."], ["["]) or asked_for_size or is_key_of_map:
            continue
        if shape.items is not None and shape.items.fields is not None:
            return True
    return False
