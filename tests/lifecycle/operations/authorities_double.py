"""Hosts of Kubernetes in folders: authorities and certificates are real, what uses them is doubled.

As a program it makes certificates, for the doubles of kubeadm, kubectl and systemctl.
"""

from __future__ import annotations

import base64
import json
import os
import re
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

LEAVES = {
    "apiserver": "ca",
    "apiserver-kubelet-client": "ca",
    "front-proxy-client": "front-proxy-ca",
    "apiserver-etcd-client": "etcd/ca",
    "etcd/server": "etcd/ca",
    "etcd/peer": "etcd/ca",
}
CONFIGS = ("admin.conf", "controller-manager.conf", "scheduler.conf")
CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----\n", re.DOTALL)
PROGRAMS = {
    "kubeadm": 'exec "$DOUBLE" renew',
    "ps": "echo 0",
    "systemctl": """\
case "$*" in *restart*)
    [ -e "$GCLUSTER_KUBELET/pki/kubelet-server-current.pem" ] || exec "$DOUBLE" serve ;;
esac""",
    "kubectl": """\
cd "$GCLUSTER_API"
case "$*" in
    *create*) "$DOUBLE" create && echo certificatesigningrequest.certificates.k8s.io/csr-1 ;;
    *csr-1*) base64 --wrap=0 csr ;;
    *patch*) printf '%b' "$(echo "$*" | sed 's/.*"kubeconfig": "//; s/"}}.*//')" > cluster-info ;;
    *delete*) rm extension ;;
    *cluster-info*) cat cluster-info ;;
    *extension*) [ ! -e extension ] || cat extension ;;
    *"get node "*) echo "True 9" ;;
    *) printf ok ;;
esac""",
}
"""Programs of such a host, in shell: most calls need no certificate. This file does the rest."""
_PEM = serialization.Encoding.PEM


def private_key() -> tuple[Any, str]:
    """Return a key, and it in PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return key, key.private_bytes(_PEM, *form).decode()


def subject(name: str, organization: str = "") -> x509.Name:
    """Return a name."""
    parts = [(NameOID.ORGANIZATION_NAME, organization)] * bool(organization)
    return x509.Name([x509.NameAttribute(o, v) for o, v in (*parts, (NameOID.COMMON_NAME, name))])


def signed(by: tuple[str, str] | None, named: x509.Name, key: Any, public: Any) -> str:
    """Return a certificate by an authority (certificate and key), or by itself."""
    signer = serialization.load_pem_private_key(by[1].encode(), None) if by else key
    issuer = x509.load_pem_x509_certificate(by[0].encode()).subject if by else named
    begin = datetime.now(UTC) - timedelta(minutes=5)
    builder = x509.CertificateBuilder().issuer_name(issuer).subject_name(named).public_key(public)
    builder = builder.serial_number(x509.random_serial_number()).not_valid_before(begin)
    builder = builder.not_valid_after(begin + timedelta(days=365))
    if by is None:
        constraints = x509.BasicConstraints(ca=True, path_length=None)
        builder = builder.add_extension(constraints, critical=True)
        identifier = x509.SubjectKeyIdentifier.from_public_key(public)
        builder = builder.add_extension(identifier, critical=False)
    else:
        authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
        builder = builder.add_extension(authority, critical=False)
    return builder.sign(signer, hashes.SHA256()).public_bytes(_PEM).decode()


def config(authority: str, certificate: str = "") -> str:
    """Return a kubeconfig as kubeadm writes it."""
    coded = [base64.b64encode(text.encode()).decode() for text in (authority, certificate)]
    return (
        f"clusters:\n- cluster:\n    certificate-authority-data: {coded[0]}\n"
        f"users:\n- user:\n    client-certificate-data: {coded[1]}\n"
    )


def authority_of(root: Path, name: str) -> tuple[str, str]:
    """Return what kubeadm signs by: the first certificate of the file, and the key."""
    first = CERTIFICATE.findall((root / f"pki/{name}.crt").read_text())[0]
    return first, (root / f"pki/{name}.key").read_text()


def renew(root: Path) -> None:
    """Make all certificates of a control plane, as `kubeadm certs renew all` does."""
    for name, by in LEAVES.items():
        key, text = private_key()
        made = signed(authority_of(root, by), subject(name), key, key.public_key())
        (root / f"pki/{name}.crt").write_text(made)
        (root / f"pki/{name}.key").write_text(text)
    for name in CONFIGS:
        key, _ = private_key()
        made = signed(authority_of(root, "ca"), subject(name), key, key.public_key())
        (root / name).write_text(config(authority_of(root, "ca")[0], made))


def cluster_signs(api: Path, named: x509.Name, public: Any) -> str:
    """Return a certificate by what the leader's controller manager signs by."""
    leader = Path((api / "leader").read_text())
    manifest = (leader / "manifests/kube-controller-manager.yaml").read_text()
    name = re.findall(r"cluster-signing-cert-file=/etc/kubernetes/(\S+)", manifest)[0]
    certificates = CERTIFICATE.findall((leader / name).read_text())
    assert len(certificates) == 1, "the controller manager takes one certificate to sign by"
    by = certificates[0], (leader / "pki/ca.key").read_text()
    return signed(by, named, None, public)


def serve(api: Path, held: Path) -> None:
    """Have a kubelet request what it serves by, where it has nothing."""
    if not (held / "pki/kubelet-server-current.pem").exists():
        key, text = private_key()
        made = cluster_signs(api, subject("system:node:x", "system:nodes"), key.public_key())
        (held / "pki/kubelet-server-current.pem").write_text(made + text)


if __name__ == "__main__":
    folder, kubelet = (Path(os.environ[f"GCLUSTER_{n}"]) for n in ("API", "KUBELET"))
    if sys.argv[1] == "create":
        asked = base64.b64decode(json.load(sys.stdin)["spec"]["request"])
        wish = x509.load_pem_x509_csr(asked)
        (folder / "csr").write_text(cluster_signs(folder, wish.subject, wish.public_key()))
    elif sys.argv[1] == "renew":
        renew(Path(os.environ["GCLUSTER_KUBERNETES"]))
    else:
        serve(folder, kubelet)
