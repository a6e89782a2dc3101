"""The cluster's certificate authority and everything that it signs, as PEM files in one folder.

Keys are P-256: they are made in under a millisecond. Certificates are valid for ten years, as a bench never renews.
"""

import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFETIME = datetime.timedelta(days=3650)
_CLOCK_SKEW = datetime.timedelta(hours=1)


@dataclass(frozen=True, kw_only=True)
class KeyPair:
    """PEM files of a certificate and its key."""

    certificate: Path
    key: Path


class CertificateAuthority:
    """Signs with one key that lies in `folder`; the folder is made if it is missing, a former authority is replaced."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("bench-ca", ())
        certificate = (
            _builder(self._name, self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.key_pair = self._write("ca", certificate, self._key)

    @property
    def certificate(self) -> Path:
        """The authority's own certificate, which everybody trusts."""
        return self.key_pair.certificate

    def issue(
        self,
        file_name: str,
        common_name: str,
        *,
        organizations: Sequence[str] = (),
        names: Sequence[str] = (),
        addresses: Sequence[str] = (),
    ) -> KeyPair:
        """A certificate for clients and, where names or addresses are given, for servers of these.

        Kubernetes reads the common name as the user and the organizations as its groups.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = _builder(_name(common_name, organizations), self._name, key.public_key())
        if names or addresses:
            usages.append(ExtendedKeyUsageOID.SERVER_AUTH)
            alternatives = [x509.DNSName(name) for name in names]
            addresses_ = [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
            builder = builder.add_extension(x509.SubjectAlternativeName([*alternatives, *addresses_]), critical=False)
        certificate = (
            builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        return self._write(file_name, certificate, key)

    def signing_key(self, file_name: str) -> KeyPair:
        """A bare key (for ServiceAccount tokens); `certificate` is the public key's file."""
        key = ec.generate_private_key(ec.SECP256R1())
        public = self.folder / f"{file_name}.pub"
        public.write_bytes(
            key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        )
        return KeyPair(certificate=public, key=self._write_key(file_name, key))

    def _write(self, file_name: str, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> KeyPair:
        path = self.folder / f"{file_name}.crt"
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        return KeyPair(certificate=path, key=self._write_key(file_name, key))

    def _write_key(self, file_name: str, key: ec.EllipticCurvePrivateKey) -> Path:
        path = self.folder / f"{file_name}.key"
        path.touch(mode=0o600)
        path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return path


def _name(common_name: str, organizations: Sequence[str]) -> x509.Name:
    groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization) for organization in organizations]
    return x509.Name([*groups, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + _LIFETIME)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
