"""Add-ons beside the objects that gcluster compiles: what of both differs, and the order of all."""

from __future__ import annotations

from ....inventory.compile.kubernetes_objects.facts import KubernetesFacts
from ....schemas.diagnostics import Diagnostic
from ...outcome import LifecycleError
from ..kubectl import Kubectl
from ..source import takes_own_build
from .helm import find_helm
from .served import read_served
from .standing import (
    Standing,
    read_standing,
    standing,
    wanted_addons,
)

NETWORKS = frozenset({"cilium", "tigera-operator"})
"""Add-ons that are a pod network: no node is ready before one of them runs."""


def has_addons(facts: KubernetesFacts) -> bool:
    """Whether a cluster may have add-ons: nodes made here get none."""
    return not takes_own_build(facts.spec)


def moves_network(found: Standing) -> bool:
    """Whether the pod network is an add-on that comes or changes."""
    return not NETWORKS.isdisjoint({*found.added, *found.changed})


def addon_groups(facts: KubernetesFacts) -> set[str]:
    """Return the API groups that add-ons bring."""
    return {group for addon in facts.catalog.addons.values() for group in addon.kinds}


def look(
    kubectl: Kubectl, facts: KubernetesFacts, *, thorough: bool = False
) -> tuple[Standing, list[str]]:
    """Return how add-ons stand, and the kinds of theirs of which gcluster compiles objects.

    Raises:
        ApiSilent: no API server answers.
        ApiRefused: it says no.
    """
    if not has_addons(facts):
        return Standing(), []
    served = read_served(kubectl)
    kinds = served.of_groups(addon_groups(facts))
    return read_standing(kubectl, facts, served, thorough=thorough), kinds


def fresh(facts: KubernetesFacts) -> Standing:
    """Return what is to be done where there is nothing yet (pure)."""
    return standing(wanted_addons(facts), {}, ()) if has_addons(facts) else Standing()


def without_a_program(found: Standing) -> tuple[Diagnostic, ...]:
    """Return why what comes can't be rendered on this machine; () where it can."""
    if not any(one.chosen.addon.kind == "helm" for one in found.rendered):
        return ()
    try:
        find_helm()
    except LifecycleError as error:
        return error.diagnostics
    return ()
