#!/bin/sh
# A node without its cache, or whose cache is full, takes no jobs; the last line is the reason that `sinfo -R` shows.
[ -d /var/cache/models ] || { echo "no /var/cache/models"; exit 1; }
used=$(df --output=pcent /var/cache/models | tr -dc 0-9)
[ "$used" -lt 98 ] || { echo "the cache is $used % full"; exit 1; }
