"""Print the folder of the Kubernetes bundle for local nodes; build what of it is missing."""

from __future__ import annotations

import sys

from gcluster.lifecycle.cluster.outcome import LifecycleError
from gcluster.lifecycle.cluster.progress import Progress, StageFinished, StageStarted
from gcluster.lifecycle.kubernetes.release.build import ensure_built


def main() -> int:
    """Build or find the bundle; say why it can't be had."""
    try:
        folder, _ = ensure_built(_report)
    except LifecycleError as error:
        for found in error.diagnostics:
            print(f"{found.code}: {found.summary}\n{found.detail}\n{found.hint}", file=sys.stderr)
        return 1
    print(folder)
    return 0


def _report(progress: Progress) -> None:
    """Say on stderr what takes minutes; stdout is the answer's."""
    if isinstance(progress, StageStarted):
        print(f"{progress.name} …", file=sys.stderr, flush=True)
    elif isinstance(progress, StageFinished):
        print(f"{progress.name}: {progress.summary}, {progress.seconds:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
