#!/bin/sh
# Run slurmrestd for slurmctld alone, at the address given: its parts for slurmdbd end it where there is
# no slurmdbd (22.05), and slurmdbd takes no tokens.
set -eu
parts=$(/usr/sbin/slurmrestd -s list 2>&1 | grep -o 'openapi/[^ ]*' | grep -v 'dbv\|slurmdbd' | paste -s -d ,)
exec /usr/sbin/slurmrestd -a rest_auth/jwt ${parts:+-s "$parts"} "$1"
