"""What the words of `gcluster reconcile` must be: an interval, and a folder of the repository."""

# imported when the verb runs: help and other verbs need none of it

from pathlib import PurePosixPath

from ..lifecycle.outcome import Exit, failure
from ..schemas.spec.units import Duration


def wrong(summary: str, hint: str) -> Exception:
    """Return the error of a wrong command line (GC941, exit code USAGE)."""
    return failure("GC941", summary, hint=hint, exit_code=Exit.USAGE)


def seconds(interval: str) -> float:
    """Return an interval in seconds.

    Raises:
        LifecycleError: it is none, or under a second (GC941).
    """
    try:
        found = Duration.parse(interval).value
    except ValueError as error:
        raise wrong(f'--interval "{interval}": {error}', "5m") from error
    if found < 1:
        raise wrong(f'--interval "{interval}" is too short', "5m")
    return found


def folder(path: str) -> str:
    """Return a folder of the repository, "." for its top.

    Raises:
        LifecycleError: it leads out of the repository (GC941).
    """
    if ".." in PurePosixPath(path).parts:
        raise wrong(f'--path "{path}" leads out of the repository', "--path specs/")
    return path.strip("/") or "."
