#!/bin/sh
# Slurm's Prolog where the cluster has prologs of its own: runs all of them in the order of their names. The first that
# fails ends it: slurmd then drains the node and puts the job back in line.
PATH=/usr/sbin:/usr/bin:/sbin:/bin # Slurm gives none
export PATH
for program in "${GCLUSTER_HOOKS:-/usr/local/libexec/gcluster/hooks}"/prolog.d/*; do
  [ -x "$program" ] || continue
  "$program" && continue
  ended=$?
  logger -t gcluster-prolog "job ${SLURM_JOB_ID:-?} refused: $program ended with $ended" || true
  exit "$ended"
done
