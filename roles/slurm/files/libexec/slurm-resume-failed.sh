#!/bin/sh
# These nodes did not come within ResumeTimeout (ResumeFailProgram): HOSTS, a host range.
exec "${0%/*}/slurm-leave-request.sh" failed "$1"
