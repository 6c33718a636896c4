"""A bundle onto the controllers: only what isn't there yet, each file checked as it lands."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec

from ...inventory.compile.system.packages import BUNDLE_FOLDER, PACKAGE_MIRROR_ROOT
from ...inventory.hosts import Host
from ...schemas.stack.bundle import MANIFEST, SIGNATURE, BundleManifest
from ...schemas.structure.decoding import decode_json
from ..cluster.outcome import failure
from ..cluster.progress import Reporter, StageFinished, StageProgress, StageStarted
from ..nodes.ssh import SshSession, Unreachable
from ..nodes.ssh.arguments import as_root
from ..nodes.ssh.feed import feed
from ..nodes.ssh.session import Answer
from .check import sha256

_RECEIVER = Path(__file__).with_name("receive.py")
_STAGE = "package mirror"
_LIMIT_S = 6 * 3600
_BLOCK = 1 << 20


class Sent(msgspec.Struct, frozen=True):
    """A file of the bundle as the receiver is report_file of it."""

    path: str
    size: int
    sha256: str


def push_bundle(
    bundle: Path,
    manifest: BundleManifest,
    controllers: Iterable[Host],
    session: SshSession,
    report: Reporter,
) -> None:
    """Upload the bundle to each controller's package mirror; what is there isn't sent again.

    Raises:
        LifecycleError: GC921 a controller can't be reached, GC938 it can't keep the files.
    """
    files = list(_files(bundle, manifest))
    for host in controllers:
        began = time.monotonic()
        report(StageStarted(name=_STAGE, total=len(files)))
        missing = _missing(host, files, session)
        wanted = [file for file in files if file.path in missing]

        def report_file(
            done: int, path: str, total: int = len(wanted), name: str = host.name
        ) -> None:
            report(StageProgress(name=_STAGE, done=done, total=total, detail=f"{name} {path}"))

        if wanted:
            content = _content(bundle, wanted, report_file)
            _check(
                host, feed(session, host, _command(host, "receive"), content, timeout_s=_LIMIT_S)
            )
        sent = sum(file.size for file in wanted)
        summary = f"{host.name}: {len(wanted)} of {len(files)} files sent, {sent / 1e6:.1f} MB"
        report(
            StageFinished(name=_STAGE, ok=True, summary=summary, seconds=time.monotonic() - began)
        )


def _files(bundle: Path, manifest: BundleManifest) -> Iterator[Sent]:
    """Yield every file of the bundle, what names the others last."""
    for repository in manifest.repositories:
        yield from (Sent(p.path, p.size, p.sha256) for p in repository.packages)
    yield from (Sent(file.path, file.size, file.sha256) for file in manifest.files)
    names = [
        f"{r.path}/{n}"
        for r in manifest.repositories
        for n in ("Packages", "Packages.gz", "Release", "InRelease")
    ]
    for name in (*names, SIGNATURE, MANIFEST):
        yield Sent(name, (bundle / name).stat().st_size, sha256(bundle / name))


def _missing(host: Host, files: list[Sent], session: SshSession) -> set[str]:
    listed = msgspec.json.encode(files) + b"\n"
    answer = feed(session, host, _command(host, "compare"), [listed], timeout_s=_LIMIT_S)
    return set(decode_json(_check(host, answer), list[str]))


def _content(
    bundle: Path, wanted: list[Sent], report: Callable[[int, str], None]
) -> Iterator[bytes]:
    """Yield a line that describes a file, then the file, for each."""
    for done, file in enumerate(wanted, start=1):
        yield msgspec.json.encode(file) + b"\n"
        with (bundle / file.path).open("rb") as content:
            while block := content.read(_BLOCK):
                yield block
        report(done, file.path)


def _command(host: Host, what: str) -> str:
    program = _RECEIVER.read_text(encoding="utf-8")
    words = ["python3", "-c", program, what, f"{PACKAGE_MIRROR_ROOT}/{BUNDLE_FOLDER}"]
    return as_root(host, words)


def _check(host: Host, answer: Answer) -> str:
    if isinstance(answer, Unreachable):
        raise failure("GC921", f"{host.name} can't be reached: {answer.reason}")
    if answer.returncode != 0:
        lines = answer.stderr.strip().splitlines()
        raise failure(
            "GC938",
            f"{host.name} could not take the bundle: {lines[-1] if lines else 'no output'}",
            hint="run the same command again: what has arrived is not sent again",
        )
    return answer.stdout
