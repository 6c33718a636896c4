"""A spec as Kubernetes objects: queues, quotas, GPUs, networks, volumes, the gate.

Pure: the same spec, hosts and catalog give the same objects in the same order. `gcluster compile`
writes them as files that Flux or Argo CD can apply; docs/kubernetes.md explains which files are for
whom. Nodes themselves (containerd, kubeadm) are set up by roles.
"""

from .tree import kubernetes_files

__all__ = ["kubernetes_files"]
