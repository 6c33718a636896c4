#!/usr/bin/python3
"""Exchange the certificate authorities of this control plane, its kubelet's trust included.

usage: kubernetes-authorities.py            prints those that sign, and those to come: fingerprints
       kubernetes-authorities.py --make     makes the next ones, where none are; prints them (JSON)
       kubernetes-authorities.py --trust    reads the next ones, and trusts them too
       kubernetes-authorities.py --use      signs by them; all certificates are made again
       kubernetes-authorities.py --drop     trusts the authorities that sign alone
       kubernetes-authorities.py --publish  has the API say what is trusted, for those who join

The order is kubernetes.io's "Manual Rotation of CA Certificates" (read 2026-11). Of each authority
(Kubernetes', etcd's and the front proxy's) the file NAME.crt holds those that are trusted, and that
of NAME.key comes first: kubeadm signs by that one. The controller manager takes one certificate to
sign by and no more (pkg/controller/certificates/signer, setCA), so it has a file of its own
meanwhile. Each verb may be killed at any point, and run again; the folder authorities-next lasts
until --drop has ended.

GCLUSTER_KUBERNETES replaces /etc/kubernetes where a test has another folder.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(os.environ.get("GCLUSTER_KUBERNETES", "/etc/kubernetes"))
PKI, NEXT = ROOT / "pki", ROOT / "gcluster/authorities-next"
NAMES = {"ca": "kubernetes", "front-proxy-ca": "front-proxy-ca", "etcd/ca": "etcd-ca"}
"""File -> name in the certificate, as kubeadm has them."""
SIGNING = PKI / "signing-ca.crt"
"""What the controller manager signs by while ca.crt holds two certificates."""
MANAGER = ROOT / "manifests/kube-controller-manager.yaml"
LIBEXEC = Path(__file__).parent
MONITORING = LIBEXEC / "kubernetes-login.py"
"""Role prometheus has put it there: it makes a certificate of its own again."""
KUBECTL = ["kubectl", f"--kubeconfig={ROOT}/admin.conf", "--server=https://localhost:6443"]
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----\n", re.DOTALL)
_SIGNS = re.compile(r"(--cluster-signing-cert-file=)\S+")
_DAYS, _BITS = "3650", "2048"
"""As kubeadm makes them (cmd/kubeadm/app/constants, CACertificateValidityPeriod; pkiutil)."""
_EXTENSIONS = """\
[req]
distinguished_name = dn
[dn]
[authority]
basicConstraints = critical,CA:TRUE
keyUsage = critical,digitalSignature,keyEncipherment,keyCertSign
subjectKeyIdentifier = hash
"""

Authorities = dict[str, list[str]]
"""Name of a file -> certificate and key, both PEM."""


def main() -> None:
    """Do what the option says."""
    verbs: dict[str, Callable[[], None]] = {
        "--make": lambda: print(json.dumps(made())),
        "--trust": lambda: trust(json.load(sys.stdin)),
        "--use": use,
        "--drop": drop,
        "--publish": publish,
    }
    if len(sys.argv) > 1:
        verbs[sys.argv[1]]()
        return
    signs = {name: trusted(name)[0] for name in NAMES}
    following = fingerprint({name: one[0] for name, one in kept().items()}) if kept() else ""
    print(json.dumps({"signs": fingerprint(signs), "next": following}))


def made() -> Authorities:
    """Return the next authorities."""
    if not NEXT.exists():
        keep({name: new_authority(subject) for name, subject in NAMES.items()})
    return kept()


def new_authority(subject: str) -> list[str]:
    """Return another authority: certificate and key."""
    with TemporaryDirectory() as scratch:
        key, settings = Path(scratch, "key"), Path(scratch, "settings")
        key.touch(mode=0o600)
        key.write_text(openssl("genrsa", "-traditional", _BITS))
        settings.write_text(_EXTENSIONS)
        how = ["-x509", "-new", "-sha256", "-days", _DAYS, "-subj", f"/CN={subject}"]
        named = ["-key", str(key), "-config", str(settings), "-extensions", "authority"]
        return [openssl("req", *how, *named), key.read_text()]


def trust(following: Authorities) -> None:
    """Trust the next authorities too, unless they sign already."""
    if all(trusted(name)[0] == following[name][0] for name in NAMES):
        return
    run(sys.executable, str(LIBEXEC / "kubernetes-certificates.py"), "--renew")  # of one killed
    if kept() != following:
        shutil.rmtree(NEXT, ignore_errors=True)
        keep(following)
    sign_by(SIGNING, trusted("ca")[0])
    for name in NAMES:
        lay(f"{name}.crt", trusted(name)[0] + following[name][0], 0o644)
    spread()


def use() -> None:
    """Sign by the next authorities, where there are some."""
    following = kept()
    if any(following[name][0] not in trusted(name) for name in following):
        sys.exit("the next authorities are not trusted yet: --trust comes first")
    for name, (certificate, key) in following.items():
        others = [one for one in trusted(name) if one != certificate]
        lay(f"{name}.crt", certificate + "".join(others), 0o644)
        lay(f"{name}.key", key, 0o600)
    if following:
        sign_by(SIGNING, following["ca"][0])
    spread(kubelet=False)


def drop() -> None:
    """Trust the authorities that sign alone."""
    following = kept()
    if any(trusted(name)[0] != following[name][0] for name in following):
        sys.exit("the next authorities don't sign yet: --use comes first")
    for name in NAMES:
        lay(f"{name}.crt", trusted(name)[0], 0o644)
    sign_by(PKI / "ca.crt", trusted("ca")[0])
    spread()
    SIGNING.unlink(missing_ok=True)
    shutil.rmtree(NEXT, ignore_errors=True)


def spread(*, kubelet: bool = True) -> None:
    """Have all that is here read the authorities, and the API say them."""
    print(run(sys.executable, str(LIBEXEC / "kubernetes-certificates.py"), "--authorities"), end="")
    if kubelet:
        node = str(LIBEXEC / "kubernetes-node-authority.py")
        print(run(sys.executable, node, given=(PKI / "ca.crt").read_text()), end="")
    if MONITORING.exists():
        print(run(sys.executable, str(MONITORING)), end="")
    publish()


def publish() -> None:
    """Have the API say what is trusted: to hosts that join, and to servers that extend it.

    API servers only ever add to the second one (pkg/controlplane/controller/
    clusterauthenticationtrust, combineCertLists), and make it again where it is gone.
    """
    where = ["cluster-info", "--namespace=kube-public"]
    read = ["get", "configmap", "--ignore-not-found"]
    text = run(*KUBECTL, *read, *where, "--output=jsonpath={.data.kubeconfig}")
    encoded = base64.b64encode((PKI / "ca.crt").read_bytes()).decode()
    wanted = re.sub(r"(certificate-authority-data: )\S+", rf"\g<1>{encoded}", text)
    if wanted != text:
        patch = json.dumps({"data": {"kubeconfig": wanted}})
        run(*KUBECTL, "patch", "configmap", *where, "--type=merge", f"--patch={patch}")
    where = ["extension-apiserver-authentication", "--namespace=kube-system"]
    fields = "{.data.client-ca-file}{.data.requestheader-client-ca-file}"
    held = _CERTIFICATE.findall(run(*KUBECTL, *read, *where, f"--output=jsonpath={fields}"))
    if set(held) - {*trusted("ca"), *trusted("front-proxy-ca")}:
        run(*KUBECTL, "delete", "configmap", *where)


def trusted(name: str) -> list[str]:
    """Return the certificates that an authority's file holds."""
    found: list[str] = _CERTIFICATE.findall((PKI / f"{name}.crt").read_text())
    return found


def kept() -> Authorities:
    """Return the next authorities; {} where there are none."""
    if not NEXT.exists():
        return {}
    found: Authorities = json.loads((NEXT / "authorities.json").read_text())
    return found


def keep(following: Authorities) -> None:
    """Keep the next authorities, as a whole."""
    making = NEXT.with_name(f".{NEXT.name}.new")
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir(mode=0o700)
    write(making / "authorities.json", json.dumps(following), 0o600)
    making.rename(NEXT)


def sign_by(path: Path, certificate: str) -> None:
    """Have the controller manager sign by the certificate of a file."""
    if path == SIGNING:
        lay(SIGNING.name, certificate, 0o644)
    text = MANAGER.read_text()
    wanted = _SIGNS.sub(rf"\g<1>/etc/kubernetes/pki/{path.name}", text)
    if wanted != text:
        fresh = ROOT / f"gcluster/.{MANAGER.name}.new"  # outside of the kubelet's folder
        write(fresh, wanted, MANAGER.stat().st_mode & 0o777)
        fresh.rename(MANAGER)


def lay(name: str, text: str, mode: int) -> None:
    """Write a file of the authorities, unless it is so."""
    if not (PKI / name).exists() or (PKI / name).read_text() != text:
        write(PKI / name, text, mode)


def fingerprint(certificates: dict[str, str]) -> str:
    """Return what names authorities."""
    whole = "".join(certificates[name] for name in NAMES)
    return hashlib.sha256("".join(whole.split()).encode()).hexdigest()[:16]


def openssl(*words: str) -> str:
    """Return the output of openssl; end with its message where it fails."""
    return run("openssl", *words)


def write(path: Path, text: str, mode: int) -> None:
    """Replace a file as a whole."""
    fresh = path.with_name(f".{path.name}.new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w") as file:
        file.write(text)
    fresh.rename(path)


def run(*command: str, given: str = "") -> str:
    """Return the output of a program; end with its message where it fails."""
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        name = Path(command[1] if command[0] == sys.executable else command[0]).name
        sys.exit(f"{name}: {done.stderr.strip()[-400:]}")
    return done.stdout


main()
