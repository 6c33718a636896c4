#!/usr/bin/python
"""Install what AWS' EFA installer brings, if the pinned key signed it; hold it."""

from __future__ import annotations

DOCUMENTATION = r"""
module: efa_installer
short_description: Run AWS' signed EFA installer
description:
  - Downloads the installer's archive, checks its digest and its signature, runs it, and holds the packages it brought.
  - The installer brings the kernel module (DKMS), rdma-core, libfabric and aws-ofi-nccl, and no MPI.
options:
  version:
    description: Version of the installer.
    type: str
    required: true
  url:
    description: The archive.
    type: str
    required: true
  signature_url:
    description: Its detached signature.
    type: str
    required: true
  checksum:
    description: Its digest as sha256:HEX; empty where none is known.
    type: str
    default: ""
  key_url:
    description: The key that signed it, where O(key) is empty.
    type: str
    default: ""
  key:
    description: Text of the public key that signed it.
    type: str
    default: ""
  key_fingerprint:
    description: Fingerprint of that key; another signer's archive is not unpacked.
    type: str
    required: true
author: The gcluster authors
attributes:
  check_mode: {support: full, description: Says whether the installer would run.}
"""

EXAMPLES = r"""
- name: Install what AWS' signed installer brings
  gcluster.cluster.efa_installer:
    version: 1.51.0
    url: https://efa-installer.amazonaws.com/aws-efa-installer-1.51.0.tar.gz
    signature_url: https://efa-installer.amazonaws.com/aws-efa-installer-1.51.0.tar.gz.sig
    key_url: https://efa-installer.amazonaws.com/aws-efa-installer.key
    key_fingerprint: 4E9091BCBB97A96B26B15E59A05480B1DD2D3CCC
"""

RETURN = r"""
changes:
  description: What was installed and held, or would be in check mode.
  returned: success
  type: list
  elements: str
"""

import tempfile
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.download import fetch, unpack
from ..module_utils.node import run, system_path
from ..module_utils.packages import package_manager
from ..module_utils.state import Failed

ARGUMENTS: dict[str, Any] = {
    "version": {"type": "str", "required": True},
    "url": {"type": "str", "required": True},
    "signature_url": {"type": "str", "required": True},
    "checksum": {"type": "str", "default": ""},
    "key_url": {"type": "str", "default": ""},
    "key": {"type": "str", "default": "", "no_log": False},
    "key_fingerprint": {"type": "str", "required": True, "no_log": False},
}
INSTALLED = "/opt/amazon/efa_installed_packages"
INSTALL_TIMEOUT_S = 1800
SOURCE = "software.sources.aws-efa"
ADVICE = f"; nothing was changed. A mirror goes into {SOURCE}.url"
OPTIONS_SINCE = (1, 48)
"""First version of the installer with --skip-mpi and --disable-ngc."""


def installed_version() -> str:
    """Return the version of the installer that last ran here; nothing where none did."""
    listed = system_path(INSTALLED)
    lines = listed.read_text(encoding="utf-8").splitlines() if listed.exists() else []
    return next((line.split()[-1] for line in lines if "installer version:" in line), "")


def installed_packages() -> list[str]:
    """Return the names of the packages that it brought."""
    lines = system_path(INSTALLED).read_text(encoding="utf-8").splitlines()
    files = [word for line in lines if not line.startswith("#") for word in line.split()]
    names = {file.split("_")[0] for file in files if "_" in file}
    if not names:  # rpm's NAME-VERSION-RELEASE.ARCH
        names = {run("rpm", "-q", "--queryformat", "%{NAME}", file)[1] for file in files}
    return sorted(names)


def verify_signature(
    requested: dict[str, Any], archive: Path, signature: Path, folder: Path
) -> None:
    """End with the reason unless the pinned key signed the archive."""
    key, home = folder / "key", folder / "gnupg"
    home.mkdir(mode=0o700)
    if requested["key"]:
        key.write_text(requested["key"], encoding="utf-8")
    else:
        fetch(requested["key_url"], key, ADVICE)
    environment = {"GNUPGHOME": str(home)}
    run("gpg", "--batch", "--quiet", "--import", str(key), environment=environment)
    argv = ("gpg", "--batch", "--status-fd", "1", "--verify", str(signature), str(archive))
    _, text = run(*argv, environment=environment)
    valid = [line.split() for line in text.splitlines() if line.startswith("[GNUPG:] VALIDSIG ")]
    if requested["key_fingerprint"] not in {fields[-1] for fields in valid}:
        raise Failed(
            f"{requested['url']} isn't signed by {requested['key_fingerprint']}: it was not unpacked."
            f" Another signer's fingerprint goes into {SOURCE}.key_fingerprint"
        )


def options(version: str) -> list[str]:
    """Return the installer's options."""
    newer = tuple(int(part) for part in version.split(".")[:2]) >= OPTIONS_SINCE
    return ["-y", "--no-verify", *(["--skip-mpi", "--disable-ngc"] if newer else [])]


def install(requested: dict[str, Any]) -> None:
    """Fetch, check and run the installer."""
    with tempfile.TemporaryDirectory(prefix="efa.", dir="/var/tmp") as scratch:
        folder = Path(scratch)
        archive, signature = folder / "archive.tar.gz", folder / "archive.tar.gz.sig"
        digest = fetch(requested["url"], archive, ADVICE)
        if requested["checksum"] and digest != requested["checksum"]:
            raise Failed(
                f"{requested['url']} is {digest}, not {requested['checksum']}: it was not unpacked"
            )
        fetch(requested["signature_url"], signature, ADVICE)
        verify_signature(requested, archive, signature, folder)
        unpack(archive, folder)
        code, text = run(
            *("env", f"--chdir={folder}/aws-efa-installer", "bash", "./efa_installer.sh"),
            *options(requested["version"]),
            timeout_s=INSTALL_TIMEOUT_S,
            environment={"DEBIAN_FRONTEND": "noninteractive"},
        )
        if code:
            last = "\n".join(text.splitlines()[-15:])
            raise Failed(f"efa_installer.sh ended with {code}; it can be run again:\n{last}")
    if installed_version() != requested["version"]:
        raise Failed(
            f"the archive held installer {installed_version() or 'none'}, not {requested['version']}"
        )


def hold_packages(*, act: bool) -> list[str]:
    """Hold the packages that the installer brought; return those that were not held."""
    try:
        return package_manager().hold(installed_packages(), installed_only=False, act=act)
    except OSError as error:
        raise Failed(str(error)) from error


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    requested, here = module.params, installed_version()
    act, due = not module.check_mode, []
    try:
        if here != requested["version"]:
            due.append(f"EFA installer {requested['version']} instead of {here or 'none'}")
            if act:
                install(requested)
        if act or not due:
            due += [f"{name} held" for name in hold_packages(act=act)]
    except Failed as error:
        module.fail_json(msg=str(error), changes=due)
    module.exit_json(changed=bool(due), changes=due)


if __name__ == "__main__":
    main()
