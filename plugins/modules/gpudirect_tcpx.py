#!/usr/bin/python
"""Run Google's receive daemon and install its NCCL plugin, or verify them."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gpudirect_tcpx
short_description: Run GPUDirect-TCPX or TCPXO, or verify it
description:
  - Fetches the images by digest, installs the NCCL plugin, writes the units and runs the receive daemon.
  - Daemon and plugin are not changed while a job runs.
  - With O(state=verified) checks Docker for the daemon, and the kernel for NICs and devices.
options:
  state:
    description:
      - V(present) makes the changes that are due.
      - V(verified) changes nothing and fails with everything that differs on the running node.
    type: str
    choices: [present, verified]
    default: present
  kind:
    description: Which of Google's transports.
    type: str
    choices: [tcpx, tcpxo]
    required: true
  daemon:
    description: Image of the receive daemon, by digest.
    type: str
    required: true
  plugin:
    description: Image of the NCCL plugin, by digest.
    type: str
    required: true
  nics:
    description: Number of NICs for the GPUs.
    type: int
    required: true
  topology:
    description: File that says which NIC belongs to which GPU; empty for Google's own order.
    type: str
    default: ""
author: The gcluster authors
attributes:
  check_mode: {support: full, description: Returns the changes that are due and makes none.}
"""

EXAMPLES = r"""
- name: Fetch the images, install the NCCL plugin and run the receive daemon
  gcluster.cluster.gpudirect_tcpx:
    kind: tcpxo
    daemon: us-docker.pkg.dev/gce-ai-infra/gpudirect-tcpxo/tcpgpudmarxd-dev@sha256:8d9e...
    plugin: us-docker.pkg.dev/gce-ai-infra/gpudirect-tcpxo/nccl-plugin-gpudirecttcpx-dev@sha256:41b2...
    nics: 8
"""

RETURN = r"""
changes:
  description: What was changed, or would be in check mode.
  returned: state is present
  type: list
  elements: str
differences:
  description: Everything that isn't as requested.
  returned: verification failed
  type: list
  elements: str
"""

import base64
import json
import tempfile
import urllib.error
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.urls import open_url

from ..module_utils.files import write_text
from ..module_utils.node import first_line, is_active, job_runs, run, run_json, system_path
from ..module_utils.state import STATE, Failed, exit_with_differences

ARGUMENTS: dict[str, Any] = {
    "state": STATE,
    "kind": {"type": "str", "choices": ["tcpx", "tcpxo"], "required": True},
    "daemon": {"type": "str", "required": True},
    "plugin": {"type": "str", "required": True},
    "nics": {"type": "int", "required": True},
    "topology": {"type": "str", "default": ""},
}
HEAD = "# Written by gcluster. Changes made here are lost; change the spec.\n"
LIBEXEC = "/usr/local/libexec/gcluster"
SYSTEMD = "/etc/systemd/system"
UNIT, APERTURE = "gcluster-rxdm.service", "gcluster-aperture.service"
MTU = 8244
"""Of A3's GPU networks (Cluster Toolkit v1.95, A3 High and Mega blueprints)."""
ACCOUNT_URL = (
    "http://metadata.google.internal/computeMetadata/v1/instance/service-accounts/default/token"
)
PULL_TIMEOUT_S = 1200

OPTIONS = {
    "tcpxo": "--volume /dev/dmabuf_import_helper:/dev/dmabuf_import_helper"
    " --env LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu",
    "tcpx": "--volume /run/tcpx:/run/tcpx"
    " --env LD_LIBRARY_PATH=/usr/local/nvidia/lib64:/usr/lib/x86_64-linux-gnu"
    " --entrypoint /tcpgpudmarxd/build/app/tcpgpudmarxd",
}
"""Docker's, as in slurm-gcp's tools/prologs-epilogs (read 2026-11)."""

RXDM = """\
[Unit]
Description=Receive daemon of GPUDirect-{name}
Wants=network-online.target docker.service {aperture}
After=network-online.target docker.service nvidia-persistenced.service {aperture}
StartLimitIntervalSec=0

[Service]
{before}ExecStartPre=-/usr/bin/docker rm --force gcluster-rxdm
ExecStart=/usr/bin/docker run --rm --pull=never --name gcluster-rxdm --log-opt max-size=64m \\
    --cap-add=NET_ADMIN --network=host --privileged --gpus all --ulimit memlock=-1 \\
    --volume /var/lib/nvidia/lib64:/usr/local/nvidia/lib64 {options} \\
    {image} {arguments}
ExecStartPost={libexec}/rxdm-ready.sh {kind}
ExecStop=/usr/bin/docker stop gcluster-rxdm
TimeoutStartSec=180
Restart=on-failure
RestartSec=5
LimitMEMLOCK=infinity

[Install]
WantedBy=multi-user.target
"""
WINDOWS = f"""\
[Unit]
Description=Device windows of GPUDirect-TCPXO

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart={LIBEXEC}/mount-aperture.sh

[Install]
WantedBy=multi-user.target
"""


def arguments(requested: dict[str, Any]) -> str:
    """Return the daemon's own arguments."""
    if requested["kind"] == "tcpxo":
        return f"--num_hops=2 --num_nics={requested['nics']} --uid= --alsologtostderr"
    pairs = (
        f"manual --gpu_nic_topology {requested['topology']}" if requested["topology"] else "a3vm"
    )
    return f"--gpu_nic_preset {pairs} --gpu_shmem_type fd --uds_path /run/tcpx"


def files(requested: dict[str, Any]) -> dict[str, str]:
    """Return path -> text of the files for systemd."""
    kind = requested["kind"]
    has_windows = kind == "tcpxo"
    options = OPTIONS[kind]
    if requested["topology"]:
        folder = str(Path(requested["topology"]).parent)
        options += f" --volume {folder}:{folder}"
    unit = RXDM.format(
        name=kind.upper(),
        kind=kind,
        aperture=APERTURE if has_windows else "",
        before="ExecStartPre=/sbin/modprobe import-helper\n"
        if has_windows
        else "RuntimeDirectory=tcpx\n",
        options=options,
        image=requested["daemon"],
        arguments=arguments(requested),
        libexec=LIBEXEC,
    )
    found = {f"{SYSTEMD}/{UNIT}": HEAD + unit}
    if has_windows:
        found[f"{SYSTEMD}/{APERTURE}"] = HEAD + WINDOWS
        found["/etc/modules-load.d/gcluster-tcpxo.conf"] = HEAD + "import-helper\n"
    return found


def libraries(kind: str) -> Path:
    """Return where the plugin's image puts its libraries."""
    return system_path(f"/var/lib/{kind}/lib64")


def installed_plugin(kind: str) -> Path:
    """Return the file that names the plugin's image that was installed."""
    return libraries(kind).parent / "gcluster-plugin"


def is_pulled(image: str) -> bool:
    """Return whether Docker has an image."""
    return run("docker", "image", "inspect", "--format", "{{.Id}}", image)[0] == 0


def write_login(registry: str, folder: str) -> None:
    """Write Docker's login with the machine's own account, which Google's registry takes."""
    try:
        with open_url(ACCOUNT_URL, headers={"Metadata-Flavor": "Google"}, timeout=5) as answer:
            token = json.load(answer)["access_token"]
    except (urllib.error.URLError, OSError, ValueError, KeyError):
        return  # not on Google's machines: the registry may be readable by all
    secret = base64.b64encode(f"oauth2accesstoken:{token}".encode()).decode()
    config = Path(folder, "config.json")
    config.touch(mode=0o600)
    config.write_text(json.dumps({"auths": {registry: {"auth": secret}}}), encoding="utf-8")


def pull(image: str) -> None:
    """Fetch an image."""
    registry = image.split("/", maxsplit=1)[0]
    with tempfile.TemporaryDirectory(prefix="docker.") as folder:
        if registry.endswith("-docker.pkg.dev"):
            write_login(registry, folder)
        environment = {"DOCKER_CONFIG": folder}
        code, text = run("docker", "pull", image, timeout_s=PULL_TIMEOUT_S, environment=environment)
    if code:
        last = text.splitlines()[-1:] or ["no answer"]
        raise Failed(
            f"{image} can't be fetched: {last[0]}."
            " A mirror goes into software.sources.google-gpudirect.url"
        )


def install_plugin(requested: dict[str, Any]) -> None:
    """Have the plugin's image put its libraries on the node."""
    argv = (
        "docker",
        "run",
        "--rm",
        "--pull=never",
        "--network=host",
        "--volume",
        "/var/lib:/var/lib",
    )
    install = (requested["plugin"], "install", "--install-nccl")
    code, text = run(*argv, *install, timeout_s=PULL_TIMEOUT_S)
    if code:
        raise Failed(f"the NCCL plugin was not installed: {text.splitlines()[-1:]}")
    write_text(installed_plugin(requested["kind"]), requested["plugin"] + "\n", act=True)


def start(units: list[str], verb: str) -> None:
    """Enable the units, and start or restart them."""
    run("systemctl", "daemon-reload")
    for unit in units:
        run("systemctl", "enable", "--quiet", unit)
        code, text = run("systemctl", verb, unit, timeout_s=240)
        if code:
            raise Failed(f"{unit}: {text}; journalctl --unit {unit} says why")


def apply(requested: dict[str, Any], *, act: bool) -> tuple[list[str], list[dict[str, str]]]:
    """Make the changes that are due (only with `act`); return them, and the diffs of files."""
    images = [image for image in (requested["daemon"], requested["plugin"]) if not is_pulled(image)]
    has_plugin = first_line(installed_plugin(requested["kind"])) == requested["plugin"]
    wanted = files(requested)
    diffs = [
        diff
        for path, text in wanted.items()
        if (diff := write_text(system_path(path), text, act=False))
    ]
    units = [APERTURE, UNIT] if requested["kind"] == "tcpxo" else [UNIT]
    stopped = [
        unit
        for unit in units
        if not is_active(unit) or run("systemctl", "is-enabled", "--quiet", unit)[0]
    ]
    due = [
        *(f"image {image}" for image in images),
        *([] if has_plugin else ["NCCL plugin"]),
        *(diff["after_header"] for diff in diffs),
        *(f"{unit} enabled and started" for unit in stopped),
    ]
    if not act or not due:
        return due, diffs
    if (diffs or not has_plugin) and job_runs():
        raise Failed("a job runs here: the receive daemon and its plugin were not changed")
    for image in images:
        pull(image)
    if not has_plugin:
        install_plugin(requested)
    for path, text in wanted.items():
        write_text(system_path(path), text, act=True)
    start(units, "restart" if diffs else "start")
    return due, diffs


def differences(requested: dict[str, Any]) -> list[str]:
    """Return everything that keeps jobs from the fabric."""
    wrong = [f"{UNIT} is not running"] if not is_active(UNIT) else []
    asked_image = ("docker", "container", "inspect", "--format", "{{.Config.Image}}")
    code, image = run(*asked_image, "gcluster-rxdm")
    if code:
        wrong.append(f"no receive daemon runs: {image}")
    elif image != requested["daemon"]:
        wrong.append(f"the receive daemon runs from {image}, not {requested['daemon']}")
    folder = libraries(requested["kind"])
    if not list(folder.glob("libnccl-net*.so*")):
        wrong.append(f"no NCCL plugin in {folder}")
    links, error = run_json("ip", "-json", "link", "show")
    ready = [
        link for link in links or [] if link.get("operstate") == "UP" and link.get("mtu", 0) >= MTU
    ]
    if error or len(ready) < requested["nics"]:
        wrong.append(
            error or f"{len(ready)} NICs are up with an MTU of {MTU}, not {requested['nics']}"
        )
    return wrong + (window_differences(requested["nics"]) if requested["kind"] == "tcpxo" else [])


def window_differences(nics: int) -> list[str]:
    """Return what is missing of TCPXO's devices."""
    wrong = []
    if not system_path("/dev/dmabuf_import_helper").exists():
        wrong.append("/dev/dmabuf_import_helper is missing: the module import-helper isn't loaded")
    _, text = run("findmnt", "--noheadings", "--raw", "--output", "TARGET")
    windows = [line for line in text.splitlines() if line.startswith("/dev/aperture_devices/")]
    if len(windows) != nics:
        wrong.append(f"{len(windows)} device windows are mounted, not {nics}")
    return wrong


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    requested = module.params
    if requested["state"] == "verified":
        exit_with_differences(module, lambda: differences(requested))
    try:
        done, diffs = apply(requested, act=not module.check_mode)
    except Failed as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=bool(done), changes=done, diff=diffs)


if __name__ == "__main__":
    main()
