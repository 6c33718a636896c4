#!/usr/bin/python3
"""Slurm's Epilog: removes the job's scratch and shared memory, resets and checks its GPUs.

Exit 1: slurmd drains the node before the next job comes.
"""

from __future__ import annotations

import contextlib
import os

from gpu_jobs import unmap_job
from node_jobs import (
    RefusedError,
    end,
    mark_ended,
    refuse_unwell_gpus,
    remove_scratch,
    reset_gpus,
)


def main() -> None:
    """Clean up, then check."""
    with contextlib.suppress(RefusedError, OSError):  # swept before the next job
        remove_scratch()
    with contextlib.suppress(RefusedError, OSError):
        mark_ended()
    with contextlib.suppress(OSError):
        unmap_job()
    reset_gpus()
    try:
        refuse_unwell_gpus()
    except RefusedError as why:
        end("epilog", f"after job {os.environ.get('SLURM_JOB_ID', '?')}", str(why))


main()
