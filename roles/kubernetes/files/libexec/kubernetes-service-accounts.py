#!/usr/bin/python3
"""Exchange the key that signs the tokens of service accounts, on this control plane.

usage: kubernetes-service-accounts.py         prints the keys: {"signs", "verify", "next", "age_s"}
       kubernetes-service-accounts.py --make  makes the next key, where none is; prints it (PEM)
       kubernetes-service-accounts.py --add   reads the next key, and verifies tokens by it too
       kubernetes-service-accounts.py --use   signs tokens by the next key

An API server signs by sa.key and verifies by every key of sa.pub (kubernetes.io, kube-apiserver,
--service-account-key-file: the file "can contain multiple keys"; read 2026-11). `--add` keeps the
key that signs now, and leaves out those before it. What reads the keys is restarted. Each may be
killed at any point, and run again.

GCLUSTER_KUBERNETES replaces /etc/kubernetes where a test has another folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(os.environ.get("GCLUSTER_KUBERNETES", "/etc/kubernetes"))
SIGNS, VERIFY = ROOT / "pki/sa.key", ROOT / "pki/sa.pub"
NEXT = ROOT / "gcluster/sa-next.key"
CERTIFICATES = Path(__file__).with_name("kubernetes-certificates.py")
_BLOCK = re.compile(r"-----BEGIN PUBLIC KEY-----.+?-----END PUBLIC KEY-----\n", re.DOTALL)
_BITS = "2048"
"""As kubeadm makes it (cmd/kubeadm/app/util/pkiutil, rsaKeySize)."""


def main() -> None:
    """Do what the option says."""
    if "--make" in sys.argv:
        print(made(), end="")
    elif "--add" in sys.argv:
        add(sys.stdin.read())
    elif "--use" in sys.argv:
        use()
    else:
        following = public(NEXT.read_text()) if NEXT.exists() else ""
        print(
            json.dumps(
                {
                    "signs": fingerprint(public(SIGNS.read_text())),
                    "verify": [fingerprint(key) for key in verified()],
                    "next": fingerprint(following) if following else "",
                    "age_s": time.time() - SIGNS.stat().st_mtime,
                }
            )
        )


def made() -> str:
    """Return the next key."""
    if not NEXT.exists():
        write(NEXT, openssl("genrsa", "-traditional", _BITS), 0o600)
    return NEXT.read_text()


def add(key: str) -> None:
    """Verify tokens by a key too, unless it signs them already."""
    signs, following = public(SIGNS.read_text()), public(key)
    if following == signs:
        return
    if not NEXT.exists() or NEXT.read_text() != key:
        write(NEXT, key, 0o600)
    if verified() != [following, signs]:
        write(VERIFY, following + signs, 0o644)
    read_again()


def use() -> None:
    """Sign tokens by the next key, where there is one."""
    if NEXT.exists():
        key = NEXT.read_text()
        if public(key) not in verified():
            sys.exit("the next key verifies no tokens yet: --add comes first")
        if public(SIGNS.read_text()) != public(key):
            write(SIGNS, key, 0o600)
    read_again()
    NEXT.unlink(missing_ok=True)


def verified() -> list[str]:
    """Return the keys by which tokens are verified."""
    return _BLOCK.findall(VERIFY.read_text())


def public(key: str) -> str:
    """Return the public part of a private key, in PEM."""
    return openssl("pkey", "-pubout", given=key)


def fingerprint(key: str) -> str:
    """Return what names a public key."""
    return hashlib.sha256("".join(key.split()).encode()).hexdigest()[:16]


def openssl(*words: str, given: str = "") -> str:
    """Return the output of openssl; end with its message where it fails."""
    done = subprocess.run(
        ["openssl", *words], input=given, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        sys.exit(f"openssl {words[0]}: {done.stderr.strip()[-400:]}")
    return done.stdout


def write(path: Path, text: str, mode: int) -> None:
    """Replace a file as a whole."""
    fresh = path.with_name(f".{path.name}.new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w") as file:
        file.write(text)
    fresh.rename(path)


def read_again() -> None:
    """Restart what reads a key that is younger than its manifest."""
    done = subprocess.run(
        [sys.executable, str(CERTIFICATES), "--keys"], capture_output=True, text=True, check=False
    )
    print(done.stdout, end="")
    if done.returncode != 0:
        sys.exit(done.stderr.strip()[-400:])


main()
