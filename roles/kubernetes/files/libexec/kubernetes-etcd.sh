#!/bin/sh
# Run etcdctl or etcdutl of this control plane's own etcd image, whether etcd runs or not.
#
# usage: [ETCD_IMAGE=IMAGE] kubernetes-etcd.sh etcdctl|etcdutl ARGUMENT..
#        ETCD_IMAGE: before a control plane is made; else it is the one of etcd's manifest.
set -eu
pki=/etc/kubernetes/pki/etcd
export ETCDCTL_ENDPOINTS=https://127.0.0.1:2379 ETCDCTL_CACERT=$pki/ca.crt
export ETCDCTL_CERT=$pki/healthcheck-client.crt ETCDCTL_KEY=$pki/healthcheck-client.key
image=${ETCD_IMAGE:-}
for manifest in /etc/kubernetes/manifests/etcd.yaml /etc/kubernetes/gcluster/stopped/etcd.yaml; do
  [ ! -e $manifest ] || image=$(sed -n 's/^ *image: //p' $manifest)
done
[ -n "$image" ] || { echo "no etcd is set up on this host" >&2; exit 1; }
program=$1
shift
root=$(mktemp -d /run/gcluster-etcd.XXXXXX)
trap 'ctr --namespace k8s.io images unmount --rm "$root" >/dev/null 2>&1; rmdir "$root" 2>/dev/null || true' EXIT
ctr --namespace k8s.io images mount "$image" "$root" >/dev/null
"$root/usr/local/bin/$program" "$@"
