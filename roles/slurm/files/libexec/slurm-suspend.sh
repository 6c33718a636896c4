#!/bin/sh
# Slurmctld has no more work for these nodes (SuspendProgram): HOSTS, a host range.
exec "${0%/*}/slurm-leave-request.sh" suspend "$1"
