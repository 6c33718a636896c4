#!/bin/sh
# Write etcd away: a snapshot that can be read back, or none. What is over the number kept goes.
#
# usage: kubernetes-snapshot.sh KEPT
set -eu
umask 077
kept=$1
folder=/var/lib/gcluster/etcd-snapshots
libexec=/usr/local/libexec/gcluster
mkdir -p $folder
# What a snapshot or a backup left that was killed.
find $folder \( -name '*.part' -o -name '.saved-*' \) -mmin +60 -delete
name=$folder/$(date --utc +%Y%m%dT%H%M%SZ).db
trap 'rm -f "$name.part" "$name.part.part"' EXIT
$libexec/kubernetes-etcd.sh etcdctl snapshot save "$name.part" >/dev/null
$libexec/kubernetes-etcd.sh etcdutl snapshot status "$name.part" >/dev/null
mv "$name.part" "$name"
find $folder -name '[0-9]*.db' | sort -r | tail -n +"$((kept + 1))" | xargs -r rm -f
echo "$name"
