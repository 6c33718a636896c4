#!/bin/sh
# Slurm's TaskProlog: prints what each task is given on this node. What its fabric needs, where the node has
# such settings, and the job's folder on the node's disks as TMPDIR (node_jobs.py makes it).
here=$(dirname "$0")
if [ -x "$here/job-environment.sh" ]; then
  "$here/job-environment.sh"
fi
place=$(sed -n '/^[^#]/{p;q;}' "${GCLUSTER_JOB_SCRATCH:-/etc/slurm/job-scratch.conf}" 2>/dev/null)
folder=$place/gcluster-jobs/${SLURM_JOB_ID:-none}
if [ -n "$place" ] && [ -d "$folder" ]; then
  echo "export TMPDIR=$folder"
  echo "export JOB_SCRATCH=$folder"
fi
exit 0
