"""Jobs that are over their account's quota of GPUs are refused as a whole when they are made.

A quota of Kubernetes counts pod by pod: those that fit would hold their GPUs and wait for the
others for ever. GPUs are requested as a resource of a device plugin, or claimed by a template
(dynamic resource allocation); a rule sees what a job says of either, and no other object.
"""

from __future__ import annotations

from ..accounts import gpu_limits
from ..devices.gpus import claimed_counts
from ..facts import DEVICE_CLASSES, KubernetesFacts
from ..objects import Object, admission_policy, literal, validation
from .confinement import JOBS

_NAME = "gcluster-whole-jobs"
_ACCOUNT = "namespaceObject.metadata.name"
_PODS = "object.spec.?parallelism.orValue(1)"


def whole_jobs(facts: KubernetesFacts) -> Object | None:
    """A Job whose pods together are over its account's quota never runs as a whole: it is refused.

    Else those that fit would hold their GPUs and wait for the others. None: no quota limits GPUs.
    """
    most: dict[str, dict[str, int]] = {}
    for account in facts.accounts:
        limits = [facts.accounts[name].gpu_quota for name in facts.ancestors(account)]
        known = [quota for quota in limits if quota is not None]
        if known:
            most[account] = gpu_limits(facts, min(known))
    most = {account: limits for account, limits in most.items() if limits}
    if not most:
        return None
    if facts.scheduler.gpu.resource_claims:
        return _whole_claims(facts, {name: max(of.values()) for name, of in most.items()})
    requested = "int(string(c.?resources.?limits[?r].orValue('0')))"
    variables = {
        "most": f"{_ACCOUNT} in {literal(most)} ? {literal(most)}[{_ACCOUNT}] : {{}}",
        "pods": _PODS,
    }
    fits = (
        "object.spec.template.spec.containers.all(c, "
        f"variables.pods * {requested} <= variables.most[r])"
    )
    held = validation(
        f"variables.most.all(r, {fits})",
        f"'it asks for more than the quota of this account: ' + variables.most.filter(r, !({fits}))"
        ".map(r, string(variables.most[r]) + ' ' + r).join(', ')",
    )
    return admission_policy(_NAME, [JOBS], variables, [held], operations=["CREATE"])


def _whole_claims(facts: KubernetesFacts, most: dict[str, int]) -> Object:
    """Return the same rule where GPUs are claimed: by the templates that every account has.

    What a template of someone's own claims no rule can read; the account's ResourceQuota bounds it.
    """
    made = "object.spec.template.spec.?resourceClaims.orValue([])"
    named = f"{made}.filter(c, c.?resourceClaimTemplateName.orValue('') == {{}}).size()"
    variables = {
        "most": f"{_ACCOUNT} in {literal(most)} ? {literal(most)}[{_ACCOUNT}] : -1",
        "pods": _PODS,
    }
    held = [
        validation(
            "variables.most < 0 || variables.pods * ("
            + " + ".join(f"{n} * {named.format(literal(name))}" for name, n in templates.items())
            + ") <= variables.most",
            f"'it asks for more than the quota of this account: ' + string(variables.most) + "
            f"{literal(f' {DEVICE_CLASSES[vendor]}')}",
        )
        for vendor, templates in claimed_counts(facts).items()
    ]
    return admission_policy(_NAME, [JOBS], variables, held, operations=["CREATE"])
