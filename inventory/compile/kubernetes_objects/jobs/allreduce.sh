#!/bin/sh
# Runs one AllReduce over the pods of a job: each starts sshd, the first one mpirun over all of them.
# HOSTS: prefix of the pods' names; DOMAIN: their service; NODES, SLOTS: pods, and ranks in each;
# FORWARD: variables for the ranks; PREPEND: NAME=VALUE that go before what NAME has, one a line.
# The program and its arguments are this script's own.
set -eu

port=2222
mkdir -p /run/allreduce
agent="ssh -p $port -i /ssh/key -o StrictHostKeyChecking=yes -o UserKnownHostsFile=/ssh/known_hosts"
agent="$agent -o HostKeyAlias=allreduce -o BatchMode=yes -o ConnectTimeout=5 -o LogLevel=ERROR"

# What role mpi writes into /etc of nodes, pods have as variables: ranks start without racing each other.
export OMPI_MCA_pmix_base_async_modex=1 PMIX_MCA_pmix_base_async_modex=1
# EL keeps Open MPI apart, behind an environment module.
prefix=$(ls -d /usr/lib64/openmpi 2>/dev/null || true)
PATH=$PATH:/usr/sbin:/sbin${prefix:+:$prefix/bin}

host() { echo "$HOSTS$1.$DOMAIN"; }
# shellcheck disable=SC2317 # for_each calls it
reach() { until $agent "$(host "$1")" true 2>/dev/null; do sleep 0.2; done; }
# shellcheck disable=SC2317
end() { $agent "$(host "$1")" touch /run/allreduce/over || true; }

# Does something for each pod from the second argument on, for 64 at once.
for_each() {
    index=$2
    while [ "$index" -lt "$NODES" ]; do
        "$1" "$index" &
        running="${running:-} $!"
        index=$((index + 1))
        if [ $(((index - $2) % 64)) -eq 0 ] || [ "$index" -eq "$NODES" ]; then
            # shellcheck disable=SC2086 # process ids
            wait $running
            running=""
        fi
    done
}

/usr/sbin/sshd -D -e -p "$port" -f /dev/null -h /ssh/host_key -o AuthorizedKeysFile=/ssh/authorized_keys \
    -o StrictModes=no -o UsePAM=no -o PasswordAuthentication=no -o PidFile=none &

if [ "$JOB_COMPLETION_INDEX" -ne 0 ]; then
    # The first pod says when it is over; if it fails, the job ends and takes this pod with it.
    until [ -e /run/allreduce/over ]; do sleep 0.2; done
    exit 0
fi

while IFS='=' read -r name value; do
    [ -n "$name" ] || continue
    had=$(printenv "$name" || true)
    export "$name=$value${had:+:$had}"
done <<EOF
${PREPEND:-}
EOF

index=0
while [ "$index" -lt "$NODES" ]; do
    echo "$(host "$index") slots=$SLOTS" >>/run/allreduce/hosts
    index=$((index + 1))
done
for_each reach 0

set -- ${prefix:+--prefix "$prefix"} --map-by "ppr:$SLOTS:node" --bind-to none "$@"
for name in ${FORWARD:-}; do set -- -x "$name" "$@"; done
status=0
mpirun --hostfile /run/allreduce/hosts -np $((NODES * SLOTS)) \
    --mca plm_rsh_agent "$agent" "$@" 2>&1 || status=$?

for_each end 1
# By this line gcluster knows that it passed, before the API does.
echo "# mpirun ended with $status"
exit "$status"
