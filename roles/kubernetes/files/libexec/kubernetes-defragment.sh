#!/bin/sh
# Give the file system back what etcd no longer uses, where that is more than half of a large file.
#
# A member doesn't respond meanwhile: it is postponed where another one is not healthy. The
# alarm of a full database, with which etcd takes no more writes, is lifted once there is room again.
set -eu
etcdctl() { /usr/local/libexec/gcluster/kubernetes-etcd.sh etcdctl "$@"; }
value() { etcdctl endpoint status --write-out=json | grep -o "\"$1\":[0-9]*" | head -n 1 | cut -d : -f 2; }
least=$((100 * 1024 * 1024))
alarm=$(etcdctl alarm list)
if [ -z "$alarm" ] && ! etcdctl endpoint health --cluster >/dev/null 2>&1; then
  echo "another member is not well: left for later"
  exit 0
fi
case $alarm in *NOSPACE*) etcdctl compact "$(value revision)" >/dev/null 2>&1 || true ;; esac
size=$(value dbSize)
if [ "$size" -gt $least ] && [ "$size" -gt $((2 * $(value dbSizeInUse))) ]; then
  etcdctl --command-timeout=120s defrag >/dev/null
  echo "defragmented: of $size bytes $(value dbSize) are left"
fi
case $alarm in *CORRUPT*) ;; *NOSPACE*) etcdctl alarm disarm ;; esac
