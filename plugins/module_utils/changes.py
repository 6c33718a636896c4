"""Changes that modules describe first and then make, e.g. to kernel modules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from .node import job_runs, run
from .state import Failed


class Change(NamedTuple):
    """What is to be changed, and the function that does it."""

    description: str
    apply: Callable[[], object]


def applied(due: Callable[[], Iterable[Change]]) -> Callable[[bool], Iterator[str]]:
    """Return what `exit_with_state` calls: it makes the changes, or only describes them."""

    def change(act: bool) -> Iterator[str]:  # as exit_with_state calls it
        for each in list(due()):
            if act:
                each.apply()
            yield each.description

    return change


def exit_with_changes(module: Any, due: Callable[[], Iterable[Change]]) -> None:
    """End an AnsibleModule with what it changed, or would in check mode."""
    done: list[str] = []
    try:
        done.extend(applied(due)(not module.check_mode))
    except Failed as failed:
        module.fail_json(msg=str(failed), changed=bool(done), changes=done)
    module.exit_json(changed=bool(done), changes=done)


def exit_with_notes(module: Any, wrong: Sequence[str], notes: Sequence[str]) -> None:
    """End an AnsibleModule that verified: failed with all that differs, and with its notes."""
    if wrong:
        module.fail_json(msg="\n".join(wrong), differences=list(wrong), notes=list(notes))
    module.exit_json(changed=False, changes=[], notes=list(notes))


def commands(*several: Sequence[str], hint: str = "") -> Callable[[], None]:
    """Return a function that runs commands one by one, and ends at the first that fails."""

    def apply() -> None:
        for argv in several:
            code, text = run(*argv)
            if code:
                raise Failed(f"{' '.join(argv)}: {text}{hint}")

    return apply


def refuse_under_job(due: Sequence[Change], *, act: bool) -> Sequence[Change]:
    """Return changes that would disturb jobs.

    Raises:
        Failed: there are some, they are to be made, and a job runs here.
    """
    if due and act and job_runs():
        described = "; ".join(change.description for change in due)
        raise Failed(f"a job runs here: not changed: {described}")
    return due


def reload_kernel_module(
    name: str, running: str, installed: str, *, unload: Sequence[str], hint: str, refusal: str
) -> list[Change]:
    """Return the change that loads the installed version of a kernel module; none where it runs.

    Args:
        name: display name of the module or driver.
        running: version that runs; "" where none does.
        installed: version after the next load.
        unload: command that unloads the running one.
        hint: added to the reason where the module can't be exchanged.
        refusal: why nothing is changed while a job runs; "" where none can be affected.
    """
    if running == installed:
        return []
    reload = commands(*([unload] if running else []), ("modprobe", unload[-1]), hint=hint)

    def apply() -> None:
        if refusal and job_runs():
            raise Failed(refusal)
        reload()

    return [Change(f"{name} {installed} instead of {running or 'none'}", apply)]
