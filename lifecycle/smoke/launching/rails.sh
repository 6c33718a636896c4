# Runs the ranks' program; the first rank of each node prints before and after it what each port has
# carried since its driver was loaded, so that the difference says which rails the messages took:
#   # gcluster rail: HOST (before | after) DEVICE/PORT LAYER GBPS SENT RECEIVED
# in bytes; "-" for what can't be read. usage: sh -c TEXT rails PROGRAM [ARGUMENT ...]
PATH=/opt/nccl-tests/bin:/opt/nccl-tests/build:/opt/rccl-tests/bin:/opt/rccl-tests/build:$PATH
sys=${GCLUSTER_SYS_CLASS:-/sys/class} rails=${GCLUSTER_RAILS:-/var/lib/gcluster/rails} # others in tests

# The number in the first of these files that has one, times the first argument.
number() {
  times=$1
  shift
  for file; do
    { read -r value _ <"$file"; } 2>/dev/null || continue
    case $value in '' | *[!0-9]*) continue ;; esac
    echo $((value * times))
    return
  done
  echo -
}

# The sum of these files; "-" when none can be read.
total() {
  sum=-
  for file; do
    one=$(number 1 "$file")
    [ "$one" = - ] || sum=$((${sum#-} + one))
  done
  echo "$sum"
}

larger() { if [ "$1" = - ] || { [ "$2" != - ] && [ "$2" -gt "$1" ]; }; then echo "$2"; else echo "$1"; fi; }

word() { { read -r first _ <"$1"; } 2>/dev/null || first=; echo "${first:--}"; }

# Counters of the InfiniBand specification count 4 bytes; EFA and others have their own, in bytes, of
# the port or of the device. Of EFA's, tx_bytes and the kinds of messages are compared: each counts all
# that is known to be sent at least. Where the node's health check knows the rails, only those count.
ports() {
  for port in "$sys"/infiniband/*/ports/*; do
    [ -d "$port" ] || continue
    device=${port%/ports/*}
    if [ -s "$rails" ] && ! grep -qx "${device##*/}" "$rails"; then continue; fi
    sent=$(number 4 "$port/counters/port_xmit_data") received=$(number 4 "$port/counters/port_rcv_data")
    for own in "$port/hw_counters" "$device/hw_counters"; do
      [ "$sent" = - ] || break
      kinds=$(total "$own/send_bytes" "$own/rdma_write_bytes" "$own/rdma_read_resp_bytes")
      sent=$(larger "$(number 1 "$own/tx_bytes")" "$kinds")
      kinds=$(total "$own/recv_bytes" "$own/rdma_write_recv_bytes" "$own/rdma_read_bytes")
      received=$(larger "$(number 1 "$own/rx_bytes")" "$kinds")
    done
    echo "${device##*/}/${port##*/} $(word "$port/link_layer") $(word "$port/rate") $sent $received"
  done
  for card in "$sys"/net/*; do
    case ${card##*/} in eth*) ;; *) [ -e "$card/device" ] || continue ;; esac
    megabits=$(word "$card/speed")
    case $megabits in '' | *[!0-9]*) gbps=- ;; *) gbps=$((megabits / 1000)) ;; esac
    echo "${card##*/}/0 socket $gbps $(number 1 "$card/statistics/tx_bytes") $(number 1 "$card/statistics/rx_bytes")"
  done
}

say() {
  ports | while IFS= read -r line; do echo "# gcluster rail: ${SLURMD_NODENAME:-$(uname -n)} $1 $line"; done
}

[ "${SLURM_LOCALID:-${OMPI_COMM_WORLD_LOCAL_RANK:-0}}" = 0 ] || exec "$@"
say before
status=0
"$@" || status=$?
say after
exit "$status"
