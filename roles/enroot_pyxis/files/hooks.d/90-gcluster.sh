#!/usr/bin/env bash
# Written by gcluster. Changes made here are lost; change the spec.
# Gives a container what its node gives jobs, in addition to the devices (mounts.d/90-gcluster.fstab): the job's
# folder on the node's disks, libraries of the fabric where the image has none of its own, and what goes
# before the image's own settings (the NAME+ lines of /etc/gcluster/job-environment.d).
set -euo pipefail
shopt -s nullglob

etc=${GCLUSTER_ETC:-/etc} # another folder in tests

value_of() { sed -n "s/^$1=//p" "$ENROOT_ENVIRON" | tail -n 1; }

put_before() { # NAME VALUE: nothing is lost of what the image has
    local had
    had=$(value_of "$1")
    case ":$had:" in *":$2:"*) return ;; esac
    echo "$1=$2${had:+:$had}" >>"$ENROOT_ENVIRON"
}

while read -r folder; do
    case $folder in '' | '#'*) continue ;; esac
    inside=("$ENROOT_ROOTFS$folder"/*)
    [ ${#inside[@]} -eq 0 ] || continue # the image's own fit its NCCL and its libc
    echo "$folder $folder none x-create=dir,bind,ro,nosuid,nodev,private" >>"$ENROOT_MOUNTS"
    for libraries in "$folder"/lib64 "$folder"/lib "$folder"/lib/*-linux-gnu; do
        plugins=("$libraries"/*.so*)
        [ ${#plugins[@]} -eq 0 ] || put_before LD_LIBRARY_PATH "$libraries"
    done
done < <(cat "$etc/gcluster/container-libraries" 2>/dev/null)

while IFS= read -r line; do
    name=${line%%+=*}
    if [ "$name" != "$line" ] && [ -n "$(value_of "$name")" ]; then # else the job's own value holds
        put_before "$name" "${line#*+=}"
    fi
done < <(cat "$etc"/gcluster/job-environment.d/* /dev/null 2>/dev/null)

place=$(sed -n '/^[^#]/{p;q;}' "$etc/slurm/job-scratch.conf" 2>/dev/null || true)
folder=$place/gcluster-jobs/${SLURM_JOB_ID:-none}
if [ -n "$place" ] && [ -d "$folder" ]; then
    echo "$folder $folder none x-create=dir,bind,rw,nosuid,nodev,private" >>"$ENROOT_MOUNTS"
fi
