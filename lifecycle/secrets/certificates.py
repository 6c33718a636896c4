"""The authority of a cluster's monitoring, and the certificates that it issues.

Each is kept as one secret: certificate and key in one PEM text, as servers in Go and Prometheus'
`tls_config` read them.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALID = timedelta(days=3650)
"""Longer than clusters exist: no node depends on a renewal by hand."""
_SKEW = timedelta(hours=1)
"""Clocks of nodes may be behind the one that issues."""
_USAGES = {
    "server": ExtendedKeyUsageOID.SERVER_AUTH,
    "client": ExtendedKeyUsageOID.CLIENT_AUTH,
}


def new_authority(cluster: str) -> bytes:
    """Return certificate and key of a new authority, as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(f"gcluster monitoring of {cluster}")
    usage = x509.KeyUsage(
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )
    certificate = (
        _builder(name, name, key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .sign(key, hashes.SHA256())
    )
    return _pem(certificate, key)


def certificate_of(pem: bytes) -> bytes:
    """Return the certificate alone of what has a key too."""
    found = x509.load_pem_x509_certificate(pem)
    return found.public_bytes(serialization.Encoding.PEM)


def issue(authority: bytes, names: Iterable[str], usages: Iterable[str]) -> bytes:
    """Return a new certificate and its key, as PEM.

    Args:
        authority: of `new_authority`.
        names: DNS names and addresses that it is for; the first is its subject.
        usages: "server", "client": what it is good for, and nothing else is.
    """
    issuer = x509.load_pem_x509_certificate(authority)
    signer = serialization.load_pem_private_key(authority, None)
    if not isinstance(signer, ec.EllipticCurvePrivateKey):
        raise TypeError(type(signer))
    names = list(names)
    key = ec.generate_private_key(ec.SECP256R1())
    allowed = x509.ExtendedKeyUsage([_USAGES[usage] for usage in usages])
    certificate = (
        _builder(_name(names[0]), issuer.subject, key)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(allowed, critical=False)
        .add_extension(x509.SubjectAlternativeName(map(_alternative, names)), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
        )
        .sign(signer, hashes.SHA256())
    )
    return _pem(certificate, key)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + VALID)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text[:64])])


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pem(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM) + key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
