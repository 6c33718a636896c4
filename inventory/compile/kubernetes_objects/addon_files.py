"""Add-ons as files: what they are and their values, and the same for Flux and for Argo CD."""

from __future__ import annotations

from ..steps import Json
from .addons import ChosenAddon, chosen_addons
from .facts import KubernetesFacts
from .objects import Object, new, owned
from .yaml_files import documents, to_yaml

_FLUX = "flux-system"
_ARGO = "argocd"
_CHART_LAYER = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
"""Layer of an OCI artefact that is the chart: others hold its provenance (helm-controller v1.4.0,
docs/spec/v2/helmreleases, OCIRepository reference)."""


def addon_files(facts: KubernetesFacts, folders: list[str]) -> dict[str, bytes]:
    """Return the add-ons' files.

    Args:
        facts: the cluster.
        folders: folders of objects, in the order in which they are applied.
    """
    chosen = chosen_addons(facts)
    files = {"addons/addons.yaml": to_yaml([describe(one) for one in chosen]).encode()}
    for one in chosen:
        if one.values:
            files[f"addons/{one.addon.name}.values.yaml"] = to_yaml(one.values).encode()
    charts = [one for one in chosen if one.addon.kind == "helm"]
    cluster = facts.spec.name
    flux = [made for one in charts for made in flux_objects(one, charts)]
    argo = [argo_application(one, wave) for wave, one in enumerate(charts)]
    if charts:
        files["flux/addons.yaml"] = documents(owned(one, cluster) for one in flux)
        files["argocd/addons.yaml"] = documents(owned(one, cluster) for one in argo)
    if manifests := [one.addon.repository for one in chosen if one.addon.kind == "manifests"]:
        files["addons/manifests/kustomization.yaml"] = _kustomization(manifests)
    files["order.yaml"] = to_yaml(_order(folders)).encode()
    return files


def _kustomization(urls: list[str]) -> bytes:
    """Return the add-ons that are no charts for Flux and Argo CD, which both fetch a file's URL."""
    made = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": urls,
    }
    return to_yaml(made).encode()


def describe(one: ChosenAddon) -> dict[str, Json]:
    """Return what an add-on is; a digest that isn't known is null, and `up` refuses it."""
    addon = one.addon
    made: dict[str, Json] = {
        "name": addon.name,
        "kind": addon.kind,
        "repository": addon.repository,
        "version": addon.version,
        "digest": addon.digest,
        "namespace": addon.namespace,
    }
    if addon.chart is not None:
        made["chart"] = addon.chart
    if addon.images:
        made["images"] = dict(addon.images)
    if one.values:
        made["values"] = f"{addon.name}.values.yaml"
    return made


def flux_objects(one: ChosenAddon, others: list[ChosenAddon]) -> list[Object]:
    """Return where Flux finds a chart, and its release (source v1, helm v2; read 2026-11)."""
    addon = one.addon
    chart = str(addon.chart)
    here = {other.addon.name for other in others}
    spec: dict[str, Json] = {
        "interval": "1h",
        "releaseName": addon.name,
        "targetNamespace": addon.namespace,
        "storageNamespace": addon.namespace,
        "install": {"crds": "CreateReplace"},
        "upgrade": {"crds": "CreateReplace"},
    }
    if addon.repository.startswith("oci://"):
        source = new(
            "source.toolkit.fluxcd.io/v1",
            "OCIRepository",
            addon.name,
            namespace=_FLUX,
            spec={
                "interval": "1h",
                "url": f"{addon.repository}/{chart}",
                "layerSelector": {"mediaType": _CHART_LAYER, "operation": "copy"},
                "ref": {
                    "tag": addon.version
                },  # a digest would be the artefact's, not the archive's
            },
        )
        spec["chartRef"] = {"kind": "OCIRepository", "name": addon.name, "namespace": _FLUX}
    else:
        source = new(
            "source.toolkit.fluxcd.io/v1",
            "HelmRepository",
            addon.name,
            namespace=_FLUX,
            spec={"interval": "1h", "url": addon.repository},
        )
        reference = {"kind": "HelmRepository", "name": addon.name, "namespace": _FLUX}
        wanted = {"chart": chart, "version": addon.version, "sourceRef": reference}
        spec["chart"] = {"spec": wanted}
    if after := [{"name": name, "namespace": _FLUX} for name in addon.after if name in here]:
        spec["dependsOn"] = after
    if one.values:
        spec["values"] = one.values
    release = new(
        "helm.toolkit.fluxcd.io/v2", "HelmRelease", addon.name, namespace=_FLUX, spec=spec
    )
    return [source, release]


def argo_application(one: ChosenAddon, wave: int) -> Object:
    """Return the Argo CD application of a chart; waves keep the order (argoproj.io/v1alpha1)."""
    addon = one.addon
    helm: dict[str, Json] = {"releaseName": addon.name}
    if one.values:
        helm["valuesObject"] = one.values
    spec = {
        "project": "default",
        "source": {
            "repoURL": addon.repository.removeprefix("oci://"),
            "chart": addon.chart,
            "targetRevision": addon.version,
            "helm": helm,
        },
        "destination": {"server": "https://kubernetes.default.svc", "namespace": addon.namespace},
        "syncPolicy": {
            "automated": {"prune": True, "selfHeal": True},
            "syncOptions": ["ServerSideApply=true"],
        },
    }
    return new(
        "argoproj.io/v1alpha1",
        "Application",
        addon.name,
        namespace=_ARGO,
        annotations={"argocd.argoproj.io/sync-wave": str(wave)},
        spec=spec,
    )


def _order(folders: list[str]) -> list[str]:
    """Return what is applied after what: the add-ons bring the kinds that later folders use."""
    before = [name for name in folders if name in {"namespaces", "accounts"}]
    return [*before, "addons", *(name for name in folders if name not in before)]
