#!/bin/sh
# Fetches an image of Google's registry as the machine's own account, unless Docker has it.
# usage: google-image.sh IMAGE@DIGEST
set -eu
image=$1
docker image inspect --format '{{.Id}}' "$image" >/dev/null 2>&1 && exit 0
DOCKER_CONFIG=$(mktemp -d)
export DOCKER_CONFIG
trap 'rm -rf "$DOCKER_CONFIG"' EXIT
account=http://metadata.google.internal/computeMetadata/v1/instance/service-accounts/default/token
# Not on Google's machines, or from a mirror: the registry may be readable by all.
if answer=$(curl --silent --fail --max-time 5 --header 'Metadata-Flavor: Google' "$account"); then
  printf '%s' "$answer" | sed -n 's/.*"access_token": *"\([^"]*\)".*/\1/p' |
    docker login --username oauth2accesstoken --password-stdin "https://${image%%/*}" >/dev/null
fi
docker pull --quiet "$image"
