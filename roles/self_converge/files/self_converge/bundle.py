"""The pool's manifest and what it names: fetched, proven, unpacked; else never used."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import tarfile
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from self_converge.settings import NAMESPACE, SIGNERS, STATE, Settings, read_json, write_atomically

FORMAT = 1
TIMEOUT_S = 20
NOT_FOUND = 404
MANIFEST_LIMIT = 4 << 20
"""Bytes; a manifest of fifty steps has 10,000."""


class Refused(Exception):  # noqa: N818  # named for what happened
    """The bundle is not used, with the reason."""


class Away(Exception):  # noqa: N818  # named for what happened
    """There is nothing to do: the package mirror doesn't respond, or nothing is published."""


def manifest(settings: Settings) -> dict[str, Any]:
    """Return the pool's manifest; raises Away and Refused."""
    raw = _get(f"{settings.mirror}/{settings.pool}.signed", lambda body: body.read(MANIFEST_LIMIT))
    known = STATE / "manifest.signed"
    if not (known.exists() and known.read_bytes() == raw):
        _prove(raw, settings)
    try:
        found: dict[str, Any] = json.loads(json.loads(raw)["manifest"])
    except (ValueError, KeyError, TypeError) as error:
        raise Refused(f"the manifest can't be read: {error}") from error
    if (found.get("cluster"), found.get("pool")) != (settings.cluster, settings.pool):
        raise Refused("the manifest is of another cluster or pool")
    if found.get("format") != FORMAT:
        raise Refused("the manifest has format {}, known is {}".format(found.get("format"), FORMAT))
    last = int(read_json(STATE / "state.json").get("serial", 0))
    if int(found["serial"]) < last:
        message = (
            "the manifest is number {}, and {} was here before: an old one is never taken again"
        )
        raise Refused(message.format(found["serial"], last))
    if not (known.exists() and known.read_bytes() == raw):
        write_atomically(known, raw)
    return found


def _prove(raw: bytes, settings: Settings) -> None:
    try:
        signed = json.loads(raw)
        text, signature = str(signed["manifest"]), str(signed["signature"])
    except (ValueError, KeyError, TypeError) as error:
        raise Refused(f"the manifest can't be read: {error}") from error
    with tempfile.NamedTemporaryFile(
        "w", suffix=".sig", encoding="ascii", errors="replace"
    ) as file:
        file.write(signature)
        file.flush()
        who = ["-I", "converge@" + settings.cluster, "-n", NAMESPACE, "-f", str(SIGNERS)]
        try:
            done = subprocess.run(
                ["ssh-keygen", "-Y", "verify", *who, "-s", file.name],
                input=text,
                capture_output=True,
                text=True,
                check=False,
            )
        except OSError as error:
            raise Refused(f"no signature can be checked: {error}") from error
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        message = lines[-1] if lines else f"ssh-keygen ended with {done.returncode}"
        raise Refused(f"the manifest is not signed by this cluster: {message}")


def unpacked(settings: Settings, what: dict[str, str], keep: str) -> Path:
    """Return the folder of an archive that the manifest names, fetched where it isn't here yet.

    `keep` is its kind, "bundle" or "runtime"; others of the kind are removed.
    Raises Away and Refused.
    """
    kind = STATE / keep
    folder = kind / what["sha256"]
    if folder.is_dir():
        return folder
    kind.mkdir(mode=0o700, parents=True, exist_ok=True)
    for old in kind.iterdir():
        shutil.rmtree(old)
    half = Path(tempfile.mkdtemp(prefix=".half-", dir=kind))
    with tempfile.TemporaryFile(dir=kind) as archive:
        digest = _get("{}/{}".format(settings.mirror, what["file"]), lambda b: _copy(b, archive))
        if digest != what["sha256"]:
            raise Refused("{} is not what the manifest was signed for".format(what["file"]))
        archive.seek(0)
        with tarfile.open(fileobj=archive, mode="r:gz") as tar:
            tar.extractall(half)  # noqa: S202  # its bytes are the signed ones
    half.rename(folder)
    return folder


def _copy(body: BinaryIO, into: BinaryIO) -> str:
    digest = hashlib.sha256()
    while True:
        piece = body.read(1 << 20)
        if not piece:
            return digest.hexdigest()
        digest.update(piece)
        into.write(piece)


def _get(url: str, take: Callable[[Any], Any]) -> Any:
    """Read a URL without any proxy: the package mirror is on the cluster's own network."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=TIMEOUT_S) as body:
            return take(body)
    except urllib.error.HTTPError as error:
        what = (
            "nothing is published" if error.code == NOT_FOUND else "the mirror says " + str(error)
        )
        raise Away(f"{what}: {url}") from error
    except OSError as error:
        reason = getattr(error, "reason", error)
        raise Away(f"the package mirror can't be reached: {url}: {reason}") from error
