#!/bin/sh
# Run at the node's start: mounts what /etc/gcluster/gpfs-mounts lists (file system, path and options a line) once
# GPFS is active here.
set -eu
PATH=$PATH:/usr/lpp/mmfs/bin

state() { # the value below "state" in the header
  mmgetstate -Y | awk -F: '
    $3 == "HEADER" { for (i = 1; i <= NF; i++) if ($i == "state") column = i; next }
    column { print $column; exit }'
}

[ "$(state)" = active ] || mmstartup
left=180
until [ "$(state)" = active ]; do
  [ "$left" -gt 0 ] || { echo "GPFS is $(state) after 180 s: see /var/adm/ras/mmfs.log.latest" >&2; exit 1; }
  sleep 2
  left=$((left - 2))
done
while read -r filesystem path options; do
  case $filesystem in '' | '#'*) continue ;; esac
  if findmnt --mountpoint "$path" >/dev/null; then continue; fi
  mkdir -p "$path"
  mmmount "$filesystem" "$path" ${options:+-o "$options"} </dev/null
done </etc/gcluster/gpfs-mounts
