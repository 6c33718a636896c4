#!/usr/bin/python3
"""Slurm's Epilog: takes the job's scratch away and looks at the GPUs.

Exit 1: slurmd drains the node before the next job comes.
"""

from __future__ import annotations

import contextlib
import os

from node_jobs import RefusedError, end, refuse_unwell_gpus, remove_scratch


def main() -> None:
    """Clean up, then look."""
    with contextlib.suppress(RefusedError, OSError):  # swept before the next job
        remove_scratch()
    try:
        refuse_unwell_gpus()
    except RefusedError as why:
        end("epilog", f"after job {os.environ.get('SLURM_JOB_ID', '?')}", str(why))


main()
