"""The common form of most modules: bring a node to a state, or report the differences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

STATE: dict[str, Any] = {"type": "str", "choices": ["present", "verified"], "default": "present"}
"""`present` makes it so, `verified` fails where the running node differs."""


class Failed(Exception):  # noqa: N818  # named for what happened
    """Why a node can't be brought to the state, for a person to read."""


def exit_with_state(
    module: Any,
    change: Callable[[bool], Iterator[str]],
    differences: Callable[[], Iterable[str]],
) -> None:
    """End a module with what it changed or found.

    Args:
        module: an AnsibleModule whose `state` is `STATE`.
        change: makes it so where its argument is true, and yields a line for each change.
        differences: yields a line for each difference of the running node.
    """
    if module.params["state"] == "verified":
        exit_with_differences(module, differences)
    exit_with_progress(module, change(not module.check_mode))


def exit_with_progress(module: Any, progress: Iterable[str]) -> None:
    """End a module with the changes that `progress` yields as it makes them, failed or not."""
    changes: list[str] = []
    try:
        changes.extend(progress)
    except Failed as failed:
        module.fail_json(msg=str(failed), changed=bool(changes), changes=changes)
    module.exit_json(changed=bool(changes), changes=changes)


def exit_with_differences(module: Any, differences: Callable[[], Iterable[str]]) -> None:
    """End a read-only module: success, or failure with all differences."""
    try:
        wrong = list(differences())
    except Failed as failed:
        wrong = [str(failed)]
    if wrong:
        module.fail_json(msg="\n".join(wrong), differences=wrong)
    module.exit_json(changed=False, changes=[])
