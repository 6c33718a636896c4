"""What goes with claims is what mounts them; controllers of the cloud stay."""

from __future__ import annotations

from typing import Any, cast

from gcluster.lifecycle.kubernetes.kubectl import ApiRefused, Kubectl
from gcluster.lifecycle.kubernetes.managed.release import cloud_objects, free

MOUNTED = [{"persistentVolumeClaim": {"claimName": "work"}}]
CLAIMS = ("physics/work", "kube-system/work")


def pod(name: str, volumes: list[dict[str, Any]]) -> dict[str, Any]:
    return {"kind": "Pod", "metadata": {"name": name}, "spec": {"volumes": volumes}}


def maker(kind: str, name: str, volumes: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    spec = {"template": {"spec": {"volumes": volumes}}, **more}
    spec = {"jobTemplate": {"spec": spec}} if kind == "CronJob" else spec
    return {"kind": kind, "metadata": {"name": name}, "spec": spec}


ALL = [
    maker("Deployment", "holds", MOUNTED),
    maker("Deployment", "csi-controller", [{"emptyDir": {}}]),
    maker("DaemonSet", "csi-node", []),
    maker("CronJob", "nightly", MOUNTED),
    maker("StatefulSet", "books", [], volumeClaimTemplates=[{}]),
    maker("Job", "scratch", [{"ephemeral": {}}]),
    pod("holds-1", MOUNTED),
    pod("csi-controller-1", [{"emptyDir": {}}]),
    pod("other-1", [{"persistentVolumeClaim": {"claimName": "other"}}]),
]


class ApiDouble:
    """Answers with the objects, and notes what is deleted."""

    def __init__(self, gateways: list[dict[str, Any]] | None = None) -> None:
        """Serve Gateways, or not."""
        self.deleted: list[tuple[str, ...]] = []
        self.gateways = gateways

    def get(self, kinds: str, *_: str, timeout_s: float) -> Any:
        """Return what is requested."""
        del timeout_s
        if kinds.startswith("services,"):
            return {"items": []}
        if kinds.startswith("gateways"):
            if self.gateways is None:
                raise ApiRefused('error: the server doesn\'t have a resource type "gateways"')
            return {"items": self.gateways}
        return {"items": ALL}

    def text(self, *arguments: str, timeout_s: float) -> str:
        """Note what is deleted, without options."""
        del timeout_s
        self.deleted.append(tuple(one for one in arguments if "=" in one or "/" in one)[:-1])
        return ""


def test_what_mounts_or_makes_claims_goes_and_of_kube_system_what_makes_them_and_pods() -> None:
    api = ApiDouble()
    free(cast("Kubectl", api), CLAIMS)
    assert api.deleted == [
        (
            "deployments.apps/holds",
            "cronjobs.batch/nightly",
            "statefulsets.apps/books",
            "jobs.batch/scratch",
            "pods/holds-1",
            "--namespace=physics",
        ),
        (
            "statefulsets.apps/books",
            "jobs.batch/scratch",
            "pods/holds-1",
            "--namespace=kube-system",
        ),
    ]


def test_gateways_are_load_balancers_where_they_are_served() -> None:
    assert cloud_objects(cast("Kubectl", ApiDouble())).is_empty
    one = {"kind": "Gateway", "metadata": {"name": "web", "namespace": "physics"}}
    found = cloud_objects(cast("Kubectl", ApiDouble([one])))
    assert not found.is_empty
    assert [(left.kind, left.name) for left in found.leftovers()] == [
        ("load-balancer", "physics/web")
    ]
