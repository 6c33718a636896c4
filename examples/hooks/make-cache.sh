#!/bin/sh
# Makes the folder of models that jobs share on a node. It may run again at any time, and says when nothing was to do.
set -eu
[ -d "$1" ] && [ "$(stat -c %a "$1")" = "$CACHE_MODE" ] && { echo unchanged; exit; }
install -d -m "$CACHE_MODE" "$1"
echo "made $1 for pool $GCLUSTER_POOL of $GCLUSTER_CLUSTER"
