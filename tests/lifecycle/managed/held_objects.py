"""Objects for which a cloud holds something, and what runs next to them."""

from __future__ import annotations

from typing import Any

from .eks_double import FINALIZER

RESTRICTED: dict[str, Any] = {
    "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
}
"""What the restricted profile of accounts' namespaces requires of a pod."""
CONTAINER: dict[str, Any] = {
    "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
}
"""What it requires of a container."""


def held() -> list[dict[str, Any]]:
    """Return a Service with a load balancer, and a claim with a disk that a driver made.

    The Service is the administrator's own: the quota of an account's namespace has none.
    """
    size = {"storage": "1Gi"}
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "door", "namespace": "default", "finalizers": [FINALIZER]},
            "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {
                "name": "work",
                "annotations": {"pv.kubernetes.io/provisioned-by": "ebs.csi.aws.com"},
            },
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "capacity": size,
                "persistentVolumeReclaimPolicy": "Delete",
                "storageClassName": "double",
                "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-double"},
                "claimRef": {"namespace": "physics", "name": "work"},
            },
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "work", "namespace": "physics"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "double",
                "volumeName": "work",
                "resources": {"requests": size},
            },
        },
    ]


def deployments() -> list[dict[str, Any]]:
    """Return one whose pods mount the claim, and one that mounts nothing, as a cloud's own do."""
    mounted = [{"name": "work", "persistentVolumeClaim": {"claimName": "work"}}]
    return [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name, "namespace": "physics"},
            "spec": {
                "selector": {"matchLabels": {"app": name}},
                "template": {
                    "metadata": {"labels": {"app": name}},
                    "spec": {
                        **RESTRICTED,
                        "containers": [{"name": "main", "image": "double", **CONTAINER}],
                        "volumes": volumes,
                    },
                },
            },
        }
        for name, volumes in (("holds", mounted), ("bystander", []))
    ]
