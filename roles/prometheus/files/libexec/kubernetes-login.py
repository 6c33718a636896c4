#!/usr/bin/python3
"""Let Prometheus log in to API servers and kubelets, on a control plane.

usage: kubernetes-login.py [--remove]

It makes a client's certificate of the cluster's authority for a user that may read metrics and
nothing else, where there is none, the authority has changed or it ends within a year. Kubernetes
knows no revocation of certificates: --remove takes the user's rights. Prints "changed" where
something was.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

FOLDER = Path("/etc/gcluster/prometheus")
CERTIFICATE, AUTHORITY = FOLDER / "kubernetes.pem", FOLDER / "kubernetes-ca.pem"
PKI = Path("/etc/kubernetes/pki")
KUBECTL = [
    "kubectl",
    "--kubeconfig=/etc/kubernetes/admin.conf",
    "--server=https://localhost:6443",
]
NAME = "gcluster:monitoring"
"""Of the user, its ClusterRole and what binds them."""
OWNER = "prometheus"
DAYS, RENEWED_BEFORE_S = 3650, 31_536_000
EXTENSIONS = "keyUsage=critical,digitalSignature\nextendedKeyUsage=clientAuth\n"


def main() -> int:
    """Bring certificate and rights, or take them; say on stderr what can't be done."""
    try:
        changed = removed() if "--remove" in sys.argv[1:] else brought()
    except subprocess.CalledProcessError as error:
        print(f"{error.cmd[0]}: {str(error.stderr).strip()}", file=sys.stderr)
        return 1
    if changed:
        print("changed")
    return 0


def brought() -> bool:
    """Make what isn't there; return whether something was."""
    trusted = (PKI / "ca.crt").read_bytes()
    changed = not AUTHORITY.is_file() or AUTHORITY.read_bytes() != trusted
    if changed:
        AUTHORITY.write_bytes(trusted)
    if changed or not is_valid():
        make_certificate()
        changed = True
    said = run(*KUBECTL, "apply", "--filename=-", stdin=json.dumps(rights()))
    return changed or any(not line.endswith(" unchanged") for line in said.splitlines())


def removed() -> bool:
    """Take the rights, where the API server answers, and the files."""
    kinds = "clusterrolebinding,clusterrole"
    said = run(*KUBECTL, "delete", kinds, NAME, "--ignore-not-found")
    there = [path for path in (CERTIFICATE, AUTHORITY) if path.exists()]
    for path in there:
        path.unlink()
    return bool(said.strip() or there)


def is_valid() -> bool:
    """Whether there is a certificate that is good for another year."""
    if not CERTIFICATE.is_file():
        return False
    words = ["openssl", "x509", "-in", str(CERTIFICATE), "-noout", "-checkend"]
    done = subprocess.run([*words, str(RENEWED_BEFORE_S)], capture_output=True, check=False)
    return done.returncode == 0


def make_certificate() -> None:
    """Write certificate and key into one file that Prometheus' user alone may read."""
    with TemporaryDirectory(dir=FOLDER) as scratch:
        key, request = Path(scratch, "key"), Path(scratch, "request")
        extensions = Path(scratch, "extensions")
        extensions.write_text(EXTENSIONS)
        curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        named = ["-subj", f"/CN={NAME}", "-keyout", str(key), "-out", str(request)]
        run("openssl", "req", "-new", *curve, *named)
        signer = ["-CA", str(PKI / "ca.crt"), "-CAkey", str(PKI / "ca.key")]
        serial = "0x" + run("openssl", "rand", "-hex", "16").strip()
        how = ["-set_serial", serial, "-days", str(DAYS), "-extfile", str(extensions)]
        signed = run("openssl", "x509", "-req", "-in", str(request), *signer, *how)
        new = Path(scratch, "new")
        new.touch(mode=0o600)
        new.write_text(signed + key.read_text())
        shutil.chown(new, OWNER)
        new.replace(CERTIFICATE)


def rights() -> dict[str, Any]:
    """Return the objects that let the user read metrics of API servers and of kubelets."""
    api = "rbac.authorization.k8s.io"
    rules = [
        {"nonResourceURLs": ["/metrics"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["nodes/metrics"], "verbs": ["get"]},
    ]
    about = {"apiVersion": f"{api}/v1", "metadata": {"name": NAME}}
    role = {"apiGroup": api, "kind": "ClusterRole", "name": NAME}
    users = [{"apiGroup": api, "kind": "User", "name": NAME}]
    return {
        "apiVersion": "v1",
        "kind": "List",
        "items": [
            about | {"kind": "ClusterRole", "rules": rules},
            about | {"kind": "ClusterRoleBinding", "roleRef": role, "subjects": users},
        ],
    }


def run(*words: str, stdin: str = "") -> str:
    """Return what a command prints.

    Raises:
        subprocess.CalledProcessError: it failed.
    """
    done = subprocess.run(words, input=stdin, capture_output=True, text=True, check=True)
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
