"""Kubernetes as the scheduler."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta, field

from .accounts import Account, Qos
from .noun import Name, Noun, updates
from .partition import Partition
from .words import Cidr


class VirtualAddress(Noun, frozen=True):
    """One address for several control planes on bare metal."""

    UPDATES: ClassVar = updates(replace="address by")

    address: Annotated[str, Meta(min_length=1, description="A free address of their network.")]
    by: Annotated[Literal["kube-vip", "keepalived"], Meta(description="Who moves it.")] = "kube-vip"


class KubernetesGpu(Noun, frozen=True):
    """How pods get GPUs."""

    UPDATES: ClassVar = updates(in_place="time_slices resource_claims", rolling="driver mig")

    driver: Annotated[Literal["host", "container"], Meta(description="Who brings the driver.")] = (
        "host"
    )
    mig: Annotated[
        str | None,
        Meta(description="MIG profile of all GPUs; default: off.", examples=["all-1g.10gb"]),
    ] = None
    time_slices: Annotated[int, Meta(ge=1, description="Pods that share one GPU in turns.")] = 1
    resource_claims: Annotated[
        bool, Meta(description="Dynamic resource allocation instead of the device plugin.")
    ] = False


class KubernetesScheduler(Noun, frozen=True, tag_field="type", tag="kubernetes"):
    """Kubernetes by kubeadm, or the cloud's own control plane."""

    UPDATES: ClassVar = updates(
        in_place="partitions qos accounts kueue addons",
        rolling="gpu",
        replace="cni pod_cidr service_cidr virtual_address control_plane",
    )

    partitions: Annotated[
        dict[Name, Partition],
        Meta(description='Queues; default: one, "main", with every compute pool.'),
    ] = field(default_factory=dict)
    qos: Annotated[dict[Name, Qos], Meta(description="Priority classes.")] = field(
        default_factory=dict
    )
    accounts: Annotated[dict[Name, Account], Meta(description="Namespaces with their quotas.")] = (
        field(default_factory=dict)
    )
    cni: Annotated[
        Literal["auto", "cilium", "calico", "routed"],
        Meta(description="Pod network; auto: routed on local sites, cilium elsewhere."),
    ] = "auto"
    pod_cidr: Annotated[Cidr, Meta(description="Network of the pods.")] = "10.244.0.0/16"
    service_cidr: Annotated[Cidr, Meta(description="Network of the services.")] = "10.96.0.0/12"
    virtual_address: Annotated[
        VirtualAddress | None,
        Meta(description="Of several control planes; clouds use their load balancer."),
    ] = None
    control_plane: Annotated[
        Literal["self", "eks", "gke", "aks"],
        Meta(description="Who runs the control plane: controller pools, or the cloud."),
    ] = "self"
    gpu: Annotated[KubernetesGpu, Meta(description="How pods get GPUs.")] = KubernetesGpu()
    kueue: Annotated[bool, Meta(description="Queue jobs by Kueue.")] = True
    addons: Annotated[
        list[Name], Meta(description="Add-ons of the catalog beside the built-in ones.")
    ] = field(default_factory=list)
