"""Certificates as Kubernetes reads them: names are users, organizations are groups."""

import base64
import stat
from pathlib import Path

import yaml
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from sim.control_plane.identities import Identities
from sim.control_plane.kubeconfig import build_kubeconfig, token_user, write_kubeconfig
from sim.control_plane.pki import CertificateAuthority


def _read(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def _subject(certificate: x509.Certificate) -> tuple[str, list[str]]:
    subject = certificate.subject
    (user,) = subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    groups = subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    return str(user.value), [str(group.value) for group in groups]


def test_a_node_has_its_user_its_group_and_its_address(tmp_path: Path) -> None:
    identities = Identities(tmp_path, url="https://10.96.0.1:443", api_server_addresses=["10.96.0.1"])
    client, server = identities.node("n1", address="10.245.0.1")
    names = _read(server.certificate).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert (
        _subject(_read(client.certificate)),
        names.get_values_for_type(x509.DNSName),
        [str(each) for each in names.get_values_for_type(x509.IPAddress)],
    ) == (("system:node:n1", ["system:nodes"]), ["n1"], ["10.245.0.1"])


def test_all_is_signed_by_one_authority(tmp_path: Path) -> None:
    identities = Identities(tmp_path, url="https://10.96.0.1:443", api_server_addresses=["10.96.0.1"])
    authority = _read(identities.ca.certificate)
    for pair in (identities.api_server, identities.admin, identities.cloud, identities.kubelet_client):
        _read(pair.certificate).verify_directly_issued_by(authority)


def test_only_who_listens_may_be_a_server(tmp_path: Path) -> None:
    authority = CertificateAuthority(tmp_path)
    pairs = [authority.issue("client", "c"), authority.issue("server", "s", addresses=["127.0.0.1"])]
    usages = [
        list(_read(pair.certificate).extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) for pair in pairs
    ]
    assert usages == [
        [ExtendedKeyUsageOID.CLIENT_AUTH],
        [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH],
    ]


def test_keys_are_for_their_owner_alone(tmp_path: Path) -> None:
    identities = Identities(tmp_path, url="https://10.96.0.1:443", api_server_addresses=[])
    secret = [*(tmp_path / "pki").glob("*.key"), identities.admin_kubeconfig(tmp_path / "kubeconfig")]
    assert {stat.S_IMODE(path.stat().st_mode) for path in secret} == {0o600}


def test_service_account_keys_are_a_pair(tmp_path: Path) -> None:
    from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

    pair = CertificateAuthority(tmp_path).signing_key("service-accounts")
    private = load_pem_private_key(pair.key.read_bytes(), password=None)
    assert isinstance(private, ec.EllipticCurvePrivateKey)
    assert private.public_key() == load_pem_public_key(pair.certificate.read_bytes())


def test_a_program_with_an_accounts_rights_is_that_account_and_in_its_groups(tmp_path: Path) -> None:
    identities = Identities(tmp_path, url="https://10.96.0.1:443", api_server_addresses=[])
    config = yaml.safe_load(identities.account_kubeconfig("coredns", "kube-system", "coredns").read_text())
    data = base64.b64decode(config["users"][0]["user"]["client-certificate-data"])
    assert _subject(x509.load_pem_x509_certificate(data)) == (
        "system:serviceaccount:kube-system:coredns",
        ["system:serviceaccounts", "system:serviceaccounts:kube-system"],
    )


def test_a_kubeconfig_is_complete_in_itself(tmp_path: Path) -> None:
    config = build_kubeconfig(server="https://127.0.0.1:1", ca=b"CA", user=token_user("t"), namespace="ml")
    assert yaml.safe_load(write_kubeconfig(tmp_path / "folder" / "config", config).read_text()) == {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "bench", "cluster": {"server": "https://127.0.0.1:1", "certificate-authority-data": "Q0E="}}
        ],
        "users": [{"name": "bench", "user": {"token": "t"}}],
        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench", "namespace": "ml"}}],
        "current-context": "bench",
    }
