"""Custom actions of ParallelCluster: scripts that nodes fetch at their start become hooks.

When they run: docs.aws.amazon.com/parallelcluster/latest/ug/custom-bootstrap-actions-v3.html.
OnNodeStart is before anything of the node is set up, OnNodeConfigured after everything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..draft import Draft
from ..scripts import Scripts
from ..source import Source, unresolved

_POINTS: dict[str, dict[str, str]] = {
    "OnNodeStart": {"before": "base"},
    "OnNodeConfigured": {"after": "scheduler"},
}
_ELSEWHERE = "gcluster fetches by https alone: get it, and hooks: {type: script, path}"
_UPDATED = "a hook runs again where it has changed, not at each update"
_OPEN = "a variable in it has no value: --var NAME=VALUE"


def custom_actions(node: Source, pools: Sequence[str], draft: Draft) -> None:
    """Write the hooks of a head, a pool of login nodes or a queue.

    Args:
        node: the part that has CustomActions.
        pools: that it has become.
        draft: it is written into.
    """
    scripts = Scripts(draft, "parallelcluster")
    actions = node.part("CustomActions")
    actions.leave(_UPDATED, "OnNodeUpdated")
    for key, point in _POINTS.items():
        for script in _sequence(actions.part(key)):
            address = script.raw("Script")
            own = scripts.own_way(address)
            arguments = script.peek("Args")
            given = [str(each) for each in arguments] if isinstance(arguments, list) else []
            if own:
                script.leave(own, kind="replaced")
            elif unresolved(address) or any(map(unresolved, given)):
                script.leave(_OPEN, kind="unfinished")
            elif not address.startswith("https://"):
                script.leave(_ELSEWHERE)
            else:
                name = address.rpartition("?")[0] or address
                scripts.fetched(name, address, pools, given, **point)
                script.accept_as_one()


def _sequence(action: Source) -> Iterator[Source]:
    """Yield the scripts: one, or several in their order."""
    if action.has("Script"):
        yield action
    yield from action.each("Sequence")
