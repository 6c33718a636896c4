"""Confinement of accounts' pods: the Pod Security profile of namespaces, and additional rules.

Pod Security enforces the profile (kubernetes.io/docs/concepts/security/pod-security-standards). One
pod is outside of it: that of GPUDirect-TCPXO, whose receive daemon takes NET_ADMIN in the pod's own
network. There a rule enforces the same profile for all but the daemon, and requires the daemon to
be exactly Google's, without exec into it.
"""

from __future__ import annotations

from ..devices.fabric import with_daemon
from ..devices.google import (
    DAEMON_ANNOTATIONS,
    DAEMON_COMMAND,
    DAEMON_NAME,
    DAEMON_RIGHTS,
    DEVICES,
    TCPXO,
    daemon_folders,
    google_folders,
)
from ..devices.nvlink import DAEMON_CLASS, channel_pools
from ..facts import KubernetesFacts
from ..nodes import STARTUP_TAINT
from ..objects import Object, admission_policy, literal, validation

PODS = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
JOBS = {"apiGroups": ["batch"], "apiVersions": ["v1"], "resources": ["jobs"]}
_SESSIONS = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "resources": ["pods/exec", "pods/attach"],
}
_BASELINE_CAPABILITIES = (
    *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD"),
    *("NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
)
"""What containers may add under the baseline profile (Kubernetes, Pod Security Standards)."""
_INJECTED = (DEVICES, "devices.nri.io/", "mounts.nri.io/")
"""Annotations by which plugins of the container runtime give pods devices and mounts of their node
(container-engine-accelerators, nri_device_injector; containerd/nri, plugins/device-injector)."""


def pod_security(facts: KubernetesFacts, account: str) -> str:
    """Return the profile that Pod Security holds an account's pods to."""
    if account in with_daemon(facts):
        return "privileged"  # gcluster-restricted-pods holds it
    return facts.scheduler.pod_security


def confinement(facts: KubernetesFacts) -> list[Object]:
    """Return the policies: pods wait for the scheduler, and have nothing of their host."""
    made = []
    for what, resources, at in (("pods", PODS, "object"), ("jobs", JOBS, "object.spec.template")):
        made.append(_confined(what, resources, at, facts))
        if with_daemon(facts):
            made.append(_restricted(what, resources, at, facts))
    made += [_sessions()] if with_daemon(facts) else []
    return [*made, _channels_only()] if channel_pools(facts) else made


def _confined(
    what: str, resources: dict[str, list[str]], at: str, facts: KubernetesFacts
) -> Object:
    """Pods must use the scheduler, avoid the control plane, and use nothing of the host.

    A job's template is checked: so its author sees the refusal, and not only its controller.
    """
    pod, notes = f"{at}.spec", f"{at}.?metadata.?annotations.orValue({{}})"
    daemons = with_daemon(facts)
    variables = {"containers": f"{pod}.containers + {pod}.?initContainers.orValue([])"}
    [(note, devices)] = DAEMON_ANNOTATIONS.items()
    its_own = (
        f"namespaceObject.metadata.name in {literal(sorted(daemons))} && a == {literal(note)} && "
        f"{notes}[a] == {literal(devices)}"
    )
    rights = [*_BASELINE_CAPABILITIES, *(DAEMON_RIGHTS if daemons else ())]
    held = [
        validation(
            f"{pod}.?nodeName.orValue('') == ''",
            literal("no nodeName: the scheduler places pods; use nodeSelector"),
        ),
        validation(
            f"{pod}.?tolerations.orValue([]).all(t, t.?key.orValue('') != '' && "
            "!t.key.startsWith('node-role.kubernetes.io/') && "
            f"!(t.key in ['node.kubernetes.io/unschedulable', {literal(STARTUP_TAINT)}]))",
            literal(
                "no toleration of everything, of control planes' taints, or of nodes that are "
                "drained or start"
            ),
        ),
        validation(
            f"{pod}.?volumes.orValue([]).all(v, !has(v.hostPath))",
            literal("no hostPath volumes: mount the account's claims"),
        ),
        validation(
            f"!{pod}.?hostPID.orValue(false) && !{pod}.?hostIPC.orValue(false) && "
            f"!{pod}.?hostNetwork.orValue(false)",
            literal("no hostPID, no hostIPC and no hostNetwork"),
        ),
        validation(
            "variables.containers.all(c, !c.?securityContext.?privileged.orValue(false) && "
            "c.?securityContext.?capabilities.?add.orValue([])"
            f".all(added, added in {literal(rights)}))",
            literal("no privileged containers, and capabilities of the baseline only"),
        ),
        validation(
            f"{notes}.all(a, !{literal(list(_INJECTED))}.exists(p, a.startsWith(p))"
            + (f" || ({its_own}))" if daemons else ")"),
            literal("no annotations that ask for devices or mounts of the node"),
        ),
    ]
    return admission_policy(
        f"gcluster-confined-{what}", [resources], variables, held, operations=["CREATE"]
    )


def _restricted(
    what: str, resources: dict[str, list[str]], at: str, facts: KubernetesFacts
) -> Object:
    """Pods meet the restricted profile, except for the receive daemon, which is exactly Google's.

    Its folders of the node are read-only but for the settings of the pod's own network, and its
    private ones are mounted in no other container.
    """
    pod, daemons = f"{at}.spec", with_daemon(facts)
    folders, own = [one.name for one in google_folders(TCPXO)], daemon_folders()
    mounted = {one.name: one.at for one in own}
    written = [one.name for one in own if one.writable]
    alone = [one.name for one in google_folders(TCPXO) if one.of_daemon]
    account = "namespaceObject.metadata.name"
    context = "c.?securityContext"
    unused = ("args", "envFrom", "lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
    daemon = " && ".join(
        [
            f"c.name == {literal(DAEMON_NAME)}",
            f"c.image == variables.image && c.?command.orValue([]) == {literal(DAEMON_COMMAND)}",
            *(f"!has(c.{field})" for field in (*unused, "volumeDevices", "workingDir")),
            (
                "c.?env.orValue([]).all(e, e.name == 'LD_LIBRARY_PATH' && "
                "e.?value.orValue('') == '/usr/local/nvidia/lib64')"
            ),
            (
                f"c.?volumeMounts.orValue([]).all(m, m.name in {literal(mounted)} && "
                f"m.mountPath == {literal(mounted)}[m.name] && "
                f"(m.name in {literal(written)} || m.?readOnly.orValue(false)))"
            ),
        ]
    )
    variables = {
        "image": f"{account} in {literal(daemons)} ? {literal(daemons)}[{account}] : ''",
        "daemons": f"{pod}.?initContainers.orValue([]).filter(c, {daemon})",
        "others": f"{pod}.containers + {pod}.?initContainers.orValue([]).filter(c, !({daemon}))",
    }
    rules = [
        (
            (
                f"{pod}.?volumes.orValue([]).all(v, has(v.configMap) || has(v.csi) || "
                "has(v.downwardAPI) || has(v.emptyDir) || has(v.ephemeral) || "
                "has(v.persistentVolumeClaim) || has(v.projected) || has(v.secret))"
            ),
            "volumes are claims, configMaps, secrets, emptyDirs, CSI, projected or downwardAPI",
        ),
        (
            (
                f"{pod}.?volumes.orValue([]).all(v, !(v.name in {literal(folders)} || "
                f"v.?persistentVolumeClaim.?claimName.orValue('') in {literal(alone)}) || "
                "v.?persistentVolumeClaim.?claimName.orValue('') == v.name) && "
                f"variables.others.all(c, c.?volumeMounts.orValue([]).all(m, !(m.name in "
                f"{literal(alone)})))"
            ),
            f"claims {' and '.join(alone)} are the {DAEMON_NAME}'s alone, under their own names",
        ),
        (
            f"variables.others.all(c, c.name != {literal(DAEMON_NAME)})",
            f"{DAEMON_NAME} is the sidecar that the spec's image and command make, and no other",
        ),
        (
            (
                f"variables.others.all(c, !{context}.?allowPrivilegeEscalation.orValue(true) && "
                f"{context}.?capabilities.?drop.orValue([]).exists(d, d == 'ALL') && "
                f"{context}.?capabilities.?add.orValue([]).all(d, d == 'NET_BIND_SERVICE'))"
            ),
            "set allowPrivilegeEscalation: false and capabilities: {drop: [ALL]}",
        ),
        (
            (
                f"variables.others.all(c, {context}.?runAsNonRoot.orValue("
                f"{pod}.?securityContext.?runAsNonRoot.orValue(false)) && "
                f"{context}.?runAsUser.orValue({pod}.?securityContext.?runAsUser.orValue(1)) != 0)"
            ),
            "set runAsNonRoot: true, and no runAsUser: 0",
        ),
        (
            (
                f"variables.others.all(c, {context}.?seccompProfile.?type.orValue("
                f"{pod}.?securityContext.?seccompProfile.?type.orValue('')) in "
                "['RuntimeDefault', 'Localhost']) && variables.daemons.all(c, "
                f"{context}.?seccompProfile.?type.orValue('') != 'Unconfined')"
            ),
            "set seccompProfile: {type: RuntimeDefault}",
        ),
        (
            (
                "variables.daemons.all(c, c.?securityContext.?procMount.orValue('Default') == "
                "'Default') && variables.others.all(c, c.?securityContext.?procMount"
                f".orValue('Default') == 'Default') && {pod}.?securityContext.?sysctls.orValue([])"
                ".size() == 0 && (variables.others + variables.daemons).all(c, c.?ports.orValue([])"
                ".all(p, p.?hostPort.orValue(0) == 0))"
            ),
            "no procMount, sysctls or hostPort",
        ),
    ]
    unless = f"!({account} in {literal(sorted(daemons))}) || "
    held = [validation(f"{unless}({rule})", literal(message)) for rule, message in rules]
    return admission_policy(
        f"gcluster-restricted-{what}", [resources], variables, held, operations=["CREATE"]
    )


def _sessions() -> Object:
    """No exec into the daemon: it is root, and mounts folders of the node."""
    held = validation(
        f"object.?container.orValue('') != {literal(DAEMON_NAME)}",
        literal(f"no session in {DAEMON_NAME}"),
    )
    return admission_policy(
        "gcluster-daemon-sessions", [_SESSIONS], {}, [held], operations=["CONNECT"]
    )


_CLAIMS = {
    "apiGroups": ["resource.k8s.io"],
    "apiVersions": ["v1"],
    "resources": ["resourceclaims", "resourceclaimtemplates"],
}


def _channels_only() -> Object:
    """Accounts claim channels of their domains, and never what runs IMEX.

    NVIDIA's driver gives a channel to a claim in its domain's namespace only, and doesn't check
    that of its daemon: a claim of it with another account's domain would get its folder, and the
    device that manages the fabric (kubernetes-sigs/dra-driver-nvidia-gpu v0.4.1,
    cmd/compute-domain-kubelet-plugin/device_state.go, read 2026-11).
    """
    requested = "{}.?devices.?requests.orValue([])"
    variables = {
        "requests": f"request.kind.kind == 'ResourceClaim' ? {requested.format('object.spec')} : "
        + requested.format("object.spec.spec"),
        "classes": "variables.requests.map(r, r.?firstAvailable.orValue([])"
        ".map(one, one.deviceClassName) + [r.?exactly.?deviceClassName.orValue('')])",
    }
    held = validation(
        f"!variables.classes.exists(names, {literal(DAEMON_CLASS)} in names)",
        literal(f"no claim of {DAEMON_CLASS}: make a ComputeDomain and claim its channel"),
    )
    return admission_policy("gcluster-channels", [_CLAIMS], variables, [held])
