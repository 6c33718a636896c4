#!/bin/sh
# Run before the kubelet of a node that is a container: what it asks of the kernel is its host's.
#
# The kubelet sets six values for the whole machine where they differ. Here it finds them as it wants
# them, each in a file of this node's own that hides the host's: the host is left as it was.
set -eu
mount --make-rshared / # mounts of pods have to reach other pods
own=/run/gcluster/kernel
while read -r name value; do
  file=$own/$(echo "$name" | tr / .)
  [ -e "/proc/sys/$name" ] || continue
  [ "$(cat "/proc/sys/$name")" != "$value" ] || continue
  mkdir -p $own
  echo "$value" >"$file"
  mount --bind "$file" "/proc/sys/$name"
done <<'VALUES'
vm/overcommit_memory 1
vm/panic_on_oom 0
kernel/panic 10
kernel/panic_on_oops 1
kernel/keys/root_maxkeys 1000000
kernel/keys/root_maxbytes 25000000
VALUES
