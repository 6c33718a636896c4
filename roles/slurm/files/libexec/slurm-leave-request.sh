#!/bin/sh
# Leave a request for the burst agent, which creates and removes nodes of the cloud. slurmctld waits for this program,
# so nothing is queried here and nothing is waited for.
#
#   slurm-leave-request.sh resume|suspend|failed HOSTS     HOSTS: a host range, as Slurm gives it
#
# A request is a file: its kind, its time in seconds since 1970, then a node a line. It is written
# under a hidden name, flushed to the disk and renamed, so that it is whole or not there.
set -eu
umask 027
kind=$1
hosts=$2
spool=${GCLUSTER_BURST_SPOOL:-/var/spool/gcluster/burst}
# Names sort by time; two requests of one second differ by the process.
name=$(date +%s)-$$-$kind
trap 'rm -f "$spool/.$name"' EXIT
nodes=$(scontrol show hostnames "$hosts")
printf '%s\n%s\n%s\n' "$kind" "$(date +%s)" "$nodes" > "$spool/.$name"
sync "$spool/.$name"
mv "$spool/.$name" "$spool/$name.request"
sync "$spool"
