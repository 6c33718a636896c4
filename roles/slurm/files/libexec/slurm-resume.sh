#!/bin/sh
# Slurmctld needs these nodes (ResumeProgram): HOSTS, a host range.
exec "${0%/*}/slurm-leave-request.sh" resume "$1"
