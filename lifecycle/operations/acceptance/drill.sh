#!/bin/sh
# Breaks one thing of an idle node on purpose, and measures how long it takes until Slurm has noticed and
# until the node is back. Runs as root on a controller; the node itself mends what was broken, after a time
# that is set before anything breaks, whatever becomes of this script.
# usage: drill.sh service|link NODE PARTITION [MOST]    MOST: seconds in which it is to be noticed
what=$1 node=$2 partition=$3 most=${4:-}
name=gcluster-drill-$node

problem() { echo "measure: $*"; exit 1; }
config() { scontrol show config | sed -n "s/^$1 *= *\([0-9][0-9]*\).*/\1/p"; }
# What scontrol says of the node: IDLE, IDLE+RESERVED, IDLE*+RESERVED, DOWN+NOT_RESPONDING, IDLE+DRAIN+RESERVED, ...
shown() { scontrol --oneliner show node "$node"; }
state() { shown | sed -n 's/.* State=\([^ ]*\).*/\1/p'; }
is_out() { case $(state) in *\** | *NOT_RESPONDING* | *DOWN* | *DRAIN* | *FAIL*) ;; *) return 1 ;; esac; }
is_back() { case $(state) in *IDLE*) ! is_out ;; *) return 1 ;; esac; }

if [ "$what" = service ]; then
    known=$(config SlurmdTimeout)
    break='systemctl stop slurmd' mend='systemctl start slurmd' said=slurmd
else
    known=$(config HealthCheckInterval)
    # The first rail that is up, as sysfs orders devices: "Ethernet mlx5_0 ens1f0np0", "InfiniBand mlx5_0 ".
    # shellcheck disable=SC2016  # for the node's shell
    rail=$(srun --partition="$partition" --nodelist="$node" --nodes=1 --ntasks=1 --mpi=none sh -c '
        for d in /sys/class/infiniband/*; do
            grep -qs ACTIVE "$d/ports/1/state" || continue
            layer=$(cat "$d/ports/1/link_layer")
            set -- "$d"/device/net/*
            [ "$layer" = Ethernet ] && [ -e "$1" ] && echo "$layer ${d##*/} ${1##*/}" && exit
            [ "$layer" = InfiniBand ] && command -v mlxlink >/dev/null && echo "$layer ${d##*/} ib" && exit
        done')
    # shellcheck disable=SC2086  # three words
    set -- $rail
    said=$2
    case $1 in
    InfiniBand) break="mlxlink -d $2 --port_state dn" mend="mlxlink -d $2 --port_state up" ;;
    Ethernet) break="ip link set dev $3 down" mend="ip link set dev $3 up" ;;
    *) problem "no rail of $node can be taken down: none is up, or InfiniBand without mlxlink" ;;
    esac
fi
[ "${known:-0}" -gt 0 ] || problem "Slurm has no time in which it looks at nodes"
most=${most:-$((known + 60))}
is_back || problem "$node is not idle: $(state)"

# Nobody's job may begin there meanwhile; a job that is there makes this fail, and nothing is broken.
scontrol create reservationname="$name" nodes="$node" users=root starttime=now \
    duration=$((most / 20 + 10)) >/dev/null || problem "$node can't be reserved"
trap 'scontrol delete reservationname="$name" >/dev/null' EXIT
trap 'exit 1' INT TERM
srun --reservation="$name" --partition="$partition" --nodelist="$node" --nodes=1 --ntasks=1 --mpi=none \
    systemd-run --quiet --collect --unit=gcluster-drill \
    sh -c "sleep 3; $break; sleep $most; $mend" || problem "nothing was broken: $node did not take the drill"

began=$(($(date +%s) + 3))
noticed='' reason=''
while [ "$(date +%s)" -lt $((began + most)) ]; do
    if is_out; then
        noticed=$(($(date +%s) - began))
        reason=$(shown | sed -n 's/.* Reason=//p')
        break
    fi
    sleep 1
done
while [ "$(date +%s)" -lt $((began + most)) ]; do sleep 1; done
mended=$(date +%s)
if [ "$what" = link ]; then
    # The drain was for this drill. Where the port doesn't come up, the next look drains the node again.
    [ -z "$noticed" ] || scontrol update nodename="$node" state=resume
    srun --reservation="$name" --partition="$partition" --nodelist="$node" --nodes=1 --ntasks=1 --mpi=none \
        sh -c "for i in \$(seq 120); do grep -q ACTIVE /sys/class/infiniband/$said/ports/1/state && exit; sleep 1; done; exit 1" ||
        problem "$said of $node has not come back"
fi
while ! is_back; do
    [ "$(date +%s)" -lt $((mended + known + 120)) ] || problem "$node has not come back: $(shown)"
    sleep 1
done
[ -n "$noticed" ] || problem "not noticed within $most s that $said of $node was down"
[ "$what" = service ] || case $reason in
*$said*) ;;
*) problem "the reason does not name $said: ${reason:-none was given}" ;;
esac
echo "@measure {\"noticed\": $noticed, \"back\": $(($(date +%s) - mended)), \"cpus\": 0}"
