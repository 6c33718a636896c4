#!/bin/sh
# After a job: what it left in the cache goes.
rm -rf "/var/cache/models/job-$SLURM_JOB_ID"
