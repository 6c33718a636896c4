#!/bin/sh
# Waits until the receive daemon can serve jobs; part of starting its unit, so "active" means ready.
# usage: rxdm-ready.sh (tcpx | tcpxo) [SECONDS]
kind=$1
left=${2:-120}
while [ "$left" -gt 0 ]; do
  case $kind in
    # What TCPXO's daemon logs when it has mapped the GPUs' memory (Google's own prolog waits for it).
    tcpxo) docker logs gcluster-rxdm 2>&1 | grep -q 'Buffer manager initialization complete' && exit 0 ;;
    # TCPX's daemon opens its sockets there.
    *) [ -n "$(find /run/tcpx -type s 2>/dev/null | head -n 1)" ] && exit 0 ;;
  esac
  sleep 1
  left=$((left - 1))
done
echo "the receive daemon isn't ready; its last words:" >&2
docker logs --tail 10 gcluster-rxdm >&2
exit 1
