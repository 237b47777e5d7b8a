"""Certificates for the loopback, which sign themselves."""

import datetime
import os
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


def write_certificate(folder: Path, *, passphrase: bytes | None = None) -> tuple[Path, Path]:
    """Write a certificate and its key into two files of the folder, in place of those before."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "loopback")])
    now = datetime.datetime.now(datetime.UTC)
    names = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    sealed = serialization.NoEncryption() if passphrase is None else serialization.BestAvailableEncryption(passphrase)
    files = folder / "certificate.pem", folder / "key.pem"
    contents = signed.public_bytes(pem), key.private_bytes(pem, serialization.PrivateFormat.PKCS8, sealed)
    for file, content in zip(files, contents, strict=True):
        before = file.stat().st_mtime_ns if file.exists() else None
        file.write_bytes(content)
        if before is not None:  # also where the clock of the file system is coarse
            os.utime(file, ns=(before + 1_000_000_000, before + 1_000_000_000))
    return files
