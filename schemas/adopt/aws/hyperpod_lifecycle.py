"""The folder of lifecycle scripts of a HyperPod cluster.

The base configuration's switches (config.py) and users (shared_users.txt) are carried over; a
program of one's own that a group starts becomes a hook. Read from
github.com/aws-samples/awsome-distributed-training, commit 7217859,
1.architectures/5.sagemaker-hyperpod and 7.sagemaker-hyperpod-eks, LifecycleScripts/base-config.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

import msgspec

from ..draft import Draft, reasons
from ..scripts import Scripts
from ..source import Kind, Source
from .place import SITE

PARAMETERS = "provisioning_parameters.json"
_MAIN = "lifecycle_script.py"
_UNREAD = "your scripts don't run: --lifecycle DIR reads the folder"
_ABSENT = "the folder has no such file: software and storage of the spec"
_EKS = "nodes of EKS run no hooks: an image of your own, or a DaemonSet"
_ADOPTED = "only people with a job on a node log in to it, always"
_CALLED = "when it runs is said by the scripts: hooks: {type: script, path}"
_REASONS: tuple[tuple[str, str, Kind], ...] = (
    ("enable_update_neuron_sdk", "no role installs the Neuron SDK", "lost"),
    ("enable_initsmhp", "its comforts of a shell: a hook of type script", "lost"),
    ("authtok_type", "bind_password of users: a secret by reference", "lost"),
    ("ssh_auth_method", "people log in by key alone", "replaced"),
    ("override_homedir", "homes are where storage with mount: /home is", "lost"),
    (".domain", "SSSD's domain has one name here", "replaced"),
    ("_groups", "allow_groups and admin_groups of users hold on all nodes alike", "lost"),
)


class Lifecycle:
    """A folder, read."""

    def __init__(self, files: Mapping[str, str] | None, draft: Draft) -> None:
        """Hold the texts of its files by their names; None: it wasn't given."""
        self._files = files
        self._draft = draft
        self._scripts = Scripts(draft, "hyperpod")

    @property
    def is_base(self) -> bool:
        """Whether it is the base configuration, of which lifecycle_script.py is the core."""
        return _MAIN in (self._files or {})

    def starts(self, group: Source, pool: str, *, kubernetes: bool) -> None:
        """Carry what a group starts when its nodes are made."""
        if not group.has("LifeCycleConfig"):
            return
        name = group.raw("LifeCycleConfig", "OnCreate")
        if self._files is None:
            group.leave(_UNREAD, "LifeCycleConfig")
        elif name not in self._files:
            group.leave(_ABSENT, "LifeCycleConfig")
        elif self.is_base or (kubernetes and "DISK_FOR_CONTAINERD" in self._files[name]):
            why = self._scripts.own_way(name) or "it starts the base configuration"
            group.leave(why, "LifeCycleConfig", kind="replaced")
        elif kubernetes:
            group.leave(_EKS, "LifeCycleConfig")
        else:
            self._scripts.shell(name, self._files[name], [pool])
            group.part("LifeCycleConfig").accept_as_one()

    def rest(self) -> None:
        """Carry switches and users, and list the files that nothing here replaces."""
        files = self._files or {}
        if self.is_base:
            self._switches(files.get("config.py", ""))
            self._users(files.get("shared_users.txt", ""))
        started = {hook["text"] for hook in self._draft.more.get("hooks", {}).values()}
        for name, text in sorted(files.items()):
            program = name.endswith((".sh", ".py")) or text.startswith("#!")
            if program and text not in started and not self._scripts.own_way(name):
                self._draft.leave(f"lifecycle folder: {name}", _CALLED)

    def _switches(self, text: str) -> None:
        classes = _classes(text)
        bound = classes.get("SssdConfig", {}).pop("ldap_default_authtok", None)  # a password
        config = Source(classes)
        switches = config.part("Config")
        software: dict[str, Any] = self._draft.more.setdefault("software", {})
        pyxis = switches.take("enable_docker_enroot_pyxis")
        if pyxis is not None:
            software["containers"] = "pyxis" if pyxis else "none"
        if not software:
            self._draft.more.pop("software")
        if switches.take("enable_observability") is True:
            self._draft.more["monitoring"] = {"prometheus": True}
        for switch in ("enable_update_neuron_sdk", "enable_initsmhp"):
            switches.agrees(switch, value=False)
        if not switches.agrees("enable_pam_slurm_adopt", value=True):
            switches.leave(_ADOPTED, "enable_pam_slurm_adopt", kind="replaced")
        bucket = switches.text("s3_bucket")
        if switches.take("enable_mount_s3") is True and bucket:
            place = {"mount": f"/mnt/{bucket}", "site": SITE}
            self._draft.storage["data"] = {"type": "object", "bucket": f"s3://{bucket}", **place}
        directory = config.part("SssdConfig")
        if switches.take("enable_sssd") is True:
            self._directory(directory)
            if bound is not None:
                why = "bind_password of users: a secret by reference"
                self._draft.leave("SssdConfig.ldap_default_authtok", why, settings=1)
        else:
            directory.accept()  # the base configuration reads it with enable_sssd alone
        self._draft.settle(config, reasons(_REASONS))

    def _directory(self, directory: Source) -> None:
        first, _, others = directory.text("ldap_uri").partition(",")
        users: dict[str, Any] = {"source": "sssd", "ldap": first.strip()}
        if others:
            self._draft.leave("SssdConfig.ldap_uri: further servers", "users have one directory")
        base, bind = directory.text("ldap_search_base"), directory.text("ldap_default_bind_dn")
        if base:
            users["base"] = base
        if bind:
            users["bind_dn"] = bind
        self._draft.more["users"] = users

    def _users(self, text: str) -> None:
        people = []
        for line in text.splitlines():
            name, _, rest = line.strip().partition(",")
            uid = rest.partition(",")[0]
            if name and uid.isdigit():
                people.append({"name": name, "uid": int(uid)})
        if people:
            self._draft.more["users"] = people
            self._draft.leave("shared_users.txt: homes", "they are below /home, not /fsx")


def json_value(text: str) -> Any:
    """Return the value of a JSON text; None where it is none."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return None


def _classes(text: str) -> dict[str, dict[str, Any]]:
    """Return the constants of each class of a Python file, without running it; {}: no Python."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return {}
    found: dict[str, dict[str, Any]] = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            found[node.name] = dict(_constants(node))
    return found


def _constants(node: ast.ClassDef) -> list[tuple[str, Any]]:
    pairs = []
    for line in node.body:
        if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name):
            try:
                pairs.append((line.targets[0].id, ast.literal_eval(line.value)))
            except ValueError:
                continue
    return pairs
