#!/bin/sh
# Print the place of a GPU among the machine's AMD GPUs in PCI order, from 0; udev names
# /dev/gcluster/amd-gpuN by it. $1: the GPU's PCI address, such as 0000:05:00.0.
#
# Counted are accelerators and displays without a screen (PCI classes 0x1200, 0x0302, 0x0380), whether their
# driver is loaded or not: the numbers are the same at every start.
LC_ALL=C
export LC_ALL
number=0
for device in "${GCLUSTER_PCI_DEVICES:-/sys/bus/pci/devices}"/*; do
  if ! read -r vendor < "$device/vendor" || ! read -r class < "$device/class"; then
    continue
  fi
  case "$vendor $class" in
    "0x1002 0x1200"* | "0x1002 0x0302"* | "0x1002 0x0380"*) ;;
    *) continue ;;
  esac
  if [ "${device##*/}" = "$1" ]; then
    echo "$number"
    exit 0
  fi
  number=$((number + 1))
done
exit 1
