"""The package mirror on the controller, as `up` fills it: archives first, then the manifests."""

from __future__ import annotations

import base64
import hashlib
import io
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from .....inventory.compile.system.packages import PACKAGE_MIRROR_ROOT
from .....inventory.hosts import Host
from .....schemas.spec import ClusterSpec
from ....cluster.outcome import failure
from ....nodes.ssh import SshSession, Unreachable
from ....nodes.ssh.arguments import as_root
from .bundle import PoolBundle, manifest, signed

FOLDER = f"{PACKAGE_MIRROR_ROOT}/converge"
_LIMIT_S = 300

# What begins with a dot is not served. A manifest is moved in last, and so names what is there.
_TAKE = f"""set -e
umask 022
cd {FOLDER}
base64 -d | tar -x -C .in
for kind in gz signed; do for file in .in/*.$kind; do [ ! -e "$file" ] || mv "$file" .; done; done
rmdir .in
for file in *.tar.gz; do grep -qF "$file" *.signed || rm -f "$file"; done
date +%s
"""
_PREPARE = f"""set -e
umask 022
mkdir -p {FOLDER}
cd {FOLDER}
rm -rf .in
mkdir .in
ls
"""
_WITHDRAW = f"rm -f {FOLDER}/*.signed"


class MirrorFolder:
    """The folder of the first controller that the nodes pull from."""

    def __init__(self, session: SshSession, controller: Host) -> None:
        """Set the connection; nothing is queried yet."""
        self._session = session
        self._controller = controller

    def publish(  # what is published
        self,
        spec: ClusterSpec,
        bundles: Sequence[PoolBundle],
        runtime: bytes,
        serial: int,
        key_file: Path,
    ) -> int:
        """Sign and publish the bundles; return when, in seconds by the controller's clock.

        Raises:
            LifecycleError: the controller doesn't take them.
        """
        digest = hashlib.sha256(runtime).hexdigest()
        ansible = f"ansible-{digest}.tar.gz"
        archives = {ansible: runtime, **{bundle.file: bundle.content for bundle in bundles}}
        there = set(self._run(_PREPARE).split())
        files = {name: content for name, content in archives.items() if name not in there}
        for bundle in bundles:
            limit = spec.pools[bundle.pool].update.max_failed
            text = manifest(spec.name, bundle, (ansible, digest), serial, limit)
            files[f"{bundle.pool}.signed"] = signed(text, key_file)
        answer = self._run(_TAKE, base64.encodebytes(_tar(files)).decode())
        return int(answer.split()[-1])

    def withdraw(self) -> None:
        """Stop publishing, so that nodes which still poll change nothing.

        Raises:
            LifecycleError: that fails on the controller.
        """
        self._run(_WITHDRAW)

    def _run(self, script: str, stdin: str | None = None) -> str:
        here = self._controller
        command = as_root(here, ["sh", "-c", script])
        answer = self._session.run(here, command, stdin=stdin, timeout_s=_LIMIT_S)
        if isinstance(answer, Unreachable):
            raise failure("GC921", f"{here.name} can't be reached: {answer.reason}")
        if answer.returncode:
            raise failure(
                "GC922",
                f"{here.name} doesn't take the nodes' bundles",
                detail=answer.stderr.strip(),
            )
        return answer.stdout


def _tar(files: Mapping[str, bytes]) -> bytes:
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o644
            tar.addfile(entry, io.BytesIO(content))
    return plain.getvalue()
