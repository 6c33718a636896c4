#!/bin/sh
# Before a job: its nodes have the cache, and a folder for the job in it.
set -eu
mkdir -m 0700 "/var/cache/models/job-$SLURM_JOB_ID"
chown "$SLURM_JOB_UID" "/var/cache/models/job-$SLURM_JOB_ID"
