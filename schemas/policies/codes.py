"""The codes of policies, explained: GC80x is found in the spec, GC81x in the policies file."""

from __future__ import annotations

POLICY_CODES: dict[str, tuple[str, str]] = {
    "GC801": (
        "A policy of the organisation is not kept.",
        (
            "The message names the policy and its owner. It stands in policies.yaml beside "
            "the spec. Change the spec, or ask the owner: `plan` and `up` refuse while a "
            "policy of severity error is not kept, and no flag changes that."
        ),
    ),
    "GC802": (
        "A policy can't be judged for an item, which counts as not kept.",
        (
            "The rule met a value that is not known (a price that the catalog lacks, say), "
            "divided by zero, or took too many steps. What can't be judged is never let "
            "through: make the value known, or ask the owner to say in the rule what holds "
            "when it is null."
        ),
    ),
    "GC811": (
        "An expression of a policy is not valid CEL.",
        (
            "The message is the compiler's, at its place inside the expression: wrong syntax, "
            "a function that does not exist, or an operator between kinds that don't go "
            "together."
        ),
    ),
    "GC812": (
        "An expression names a variable or field that is not there.",
        (
            "What an expression sees depends on `applies_to`; docs/policies.md lists it. "
            "Fields are those of the spec. A misspelt field inside has() would otherwise be "
            "false for ever, and the policy would let everything through."
        ),
    ),
    "GC813": (
        "A rule or condition that gives no yes or no.",
        ("`rule` and `when` must come out as true or false: compare the value with something."),
    ),
    "GC814": (
        "An expression that could take too long.",
        (
            "Loops (all, exists, map, filter) that repeat their variable can double a value each "
            "time: the uses of each loop's variable, multiplied, may not exceed 1,000. And a "
            "round of a loop may not compare, join or search whole lists of items: compare single "
            "values."
        ),
    ),
    "GC815": (
        "Two policies have the same name.",
        "Messages name the policy, so each needs a name of its own.",
    ),
    "GC816": (
        "A policy points at a key that its items don't have.",
        ("`at` is a key of the item in the spec, with dots between keys: market, or count.max."),
    ),
    "GC817": (
        "A message with braces that don't match.",
        (
            "{...} holds a CEL expression whose value is put in its place; write {{ and }} "
            "for braces."
        ),
    ),
}
