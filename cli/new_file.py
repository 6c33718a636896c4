"""A file that a verb writes for a person, never over one that is there."""

from pathlib import Path

from ..lifecycle.cluster.outcome import failure


def write_new(path: Path, text: str, *, hint: str) -> None:
    """Write a file.

    Raises:
        LifecycleError: GC945, there is one already; it is left as it was.
    """
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        summary = f"{path} exists already and was left as it is"
        raise failure("GC945", summary, hint=hint) from None
