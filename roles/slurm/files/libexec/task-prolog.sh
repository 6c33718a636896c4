#!/bin/sh
# Slurm's TaskProlog: prints what each task is given on this node. What its fabric needs, where the node has
# such settings, the UUIDs of its MIG slices, and the job's folder on the node's disks as TMPDIR (node_jobs.py makes it).
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
# A slice of a GPU is named by its UUID: a number would be that of a GPU (NVIDIA MIG user guide, "CUDA Device
# Enumeration"). Those whose device the cgroup lets the task open are its own; more than it has: nothing keeps them apart.
slices=${GCLUSTER_MIG_SLICES:-/run/gcluster/mig-slices}
if [ -r "$slices" ] && [ -n "$SLURM_GPUS_ON_NODE" ]; then
  own='' count=0
  while read -r place uuid; do
    if (: <"${GCLUSTER_MIG_DEVICES:-/dev/gcluster/mig}/$place-compute") 2>/dev/null; then
      own=$own${own:+,}$uuid count=$((count + 1))
    fi
  done <"$slices"
  if [ "$count" -gt 0 ] && [ "$count" -le "$SLURM_GPUS_ON_NODE" ]; then
    echo "export CUDA_VISIBLE_DEVICES=$own"
  fi
fi
exit 0
