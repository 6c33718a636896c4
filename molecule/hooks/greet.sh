#!/bin/sh
# A script that prints its input, and that it changes nothing the second time.
said="$1 $GCLUSTER_POOL ${#TOKEN}"
[ "$(cat /run/greeting 2>/dev/null)" = "$said" ] && { echo unchanged; exit; }
echo "$said" >/run/greeting
