"""The verbs: what each is for, told without importing it. `verbs/<verb>.py` holds it."""

from __future__ import annotations

from typing import NamedTuple


class Verb(NamedTuple):
    """One verb of the command line."""

    name: str
    section: str
    help: str
    """One line; equal to the first line of the command's docstring (a test keeps them equal)."""
    goes_on: bool = False
    """Whether it changes things, and the same command goes on where an interrupted one stopped."""


VERBS = (
    Verb("init", "Write", "Write a commented spec to start from."),
    Verb("adopt", "Write", "Write a spec of what runs already, and list what it doesn't say."),
    Verb("validate", "Write", "Check specs and say everything that is wrong with them."),
    Verb("explain", "Write", "Explain a diagnostic code."),
    Verb("migrate", "Write", "Rewrite specs in today's spelling, comments kept."),
    Verb(
        "schema",
        "Write",
        "Print the JSON Schema of the spec (or of catalogs, policies), for editors.",
    ),
    Verb("machines", "Write", "List the machine types of the catalog and what they cost."),
    Verb(
        "software",
        "Write",
        "Show which versions were tested together, and which a spec gets.",
    ),
    Verb("cost", "Write", "Say what specs cost: pools, sites, markets, power, from the catalog."),
    Verb("compile", "Write", "Write all that a spec becomes as files, without touching anything."),
    Verb("bundle", "Write", "Collect all that a spec needs for a site without a network."),
    Verb("burst", "Run", "Run jobs on rented nodes, and try out when and where they spill."),
    Verb("plan", "Run", "Say what up would change, and change nothing."),
    Verb(
        "up", "Run", "Bring the cluster to what its spec says and pass the AllReduce.", goes_on=True
    ),
    Verb("image", "Run", "Bake what roles install into images that nodes boot from.", goes_on=True),
    Verb(
        "smoke",
        "Run",
        "Run the AllReduce over all nodes and judge it, or judge a saved log.",
        goes_on=True,
    ),
    Verb(
        "repair",
        "Run",
        "Work through the repair queue: nodes that a live cluster does without.",
        goes_on=True,
    ),
    Verb("drain", "Run", "Let no further job start on nodes; running jobs go on."),
    Verb("resume", "Run", "Let jobs start again on nodes that were drained."),
    Verb(
        "reboot",
        "Run",
        "Restart nodes in waves: drained first, given back when they are fit.",
        goes_on=True,
    ),
    Verb("backup", "Run", "Save the queue as the controller keeps it, encrypted in the state."),
    Verb("restore", "Run", "Give a saved queue back to the controller, or to the next one."),
    Verb("rotate", "Run", "Make keys of a running cluster anew."),
    Verb(
        "reconcile",
        "Run",
        "Follow a repository of specs: apply what is merged, with the guards of up, and say how it "
        "is.",
        goes_on=True,
    ),
    Verb("status", "Look", "Show nodes, conditions and the queue as they are now."),
    Verb(
        "history",
        "Look",
        "List every run that changed the cluster: when, who, what and how it ended.",
    ),
    Verb("show", "Look", "Tell one run event by event; history lists the runs."),
    Verb(
        "drift",
        "Look",
        "Say what has changed since up: at the sites, on nodes, in fabric and scheduler.",
        goes_on=True,
    ),
    Verb("ledger", "Look", "Hold the book of what was made against what the sites have."),
    Verb("ssh", "Look", "Log in to a node, or run a command there."),
    Verb("doctor", "Look", "Say what this machine lacks and the command that installs it."),
    Verb(
        "down",
        "End",
        "Remove everything that up made but its data, and look for leftovers.",
        goes_on=True,
    ),
    Verb(
        "expire",
        "End",
        "Remove clusters whose time is up, announced before and never while jobs run.",
        goes_on=True,
    ),
    Verb(
        "unlock",
        "End",
        "Break a lock that its owner left behind, and free the stack that it worked on.",
    ),
)
BY_NAME = {verb.name: verb for verb in VERBS}
SECTIONS = tuple(dict.fromkeys(verb.section for verb in VERBS))
