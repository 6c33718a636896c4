#!/bin/sh
# Slurm's Epilog where the cluster has epilogs of its own: runs all of them in the order of their names, whether or not
# one fails, for each cleans up. Where one failed slurmd drains the node.
PATH=/usr/sbin:/usr/bin:/sbin:/bin # Slurm gives none
export PATH
failed=0
for program in "${GCLUSTER_HOOKS:-/usr/local/libexec/gcluster/hooks}"/epilog.d/*; do
  [ -x "$program" ] || continue
  "$program" && continue
  failed=$?
  logger -t gcluster-epilog "after job ${SLURM_JOB_ID:-?}: $program ended with $failed" || true
done
exit "$failed"
