"""An authority made for a test, and certificates of it as files that a process is told of."""

import ipaddress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from chassis.certificates import Paths

DAY = timedelta(days=1)
_numbers = count()


def _key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _alternative(name: str) -> x509.GeneralName:
    if name[0].isdigit():
        return x509.IPAddress(ipaddress.ip_address(name))
    return x509.DNSName(name)


@dataclass(frozen=True, slots=True)
class Authority:
    key: ec.EllipticCurvePrivateKey = field(default_factory=_key)
    name: x509.Name = field(default_factory=lambda: _name(f"authority {next(_numbers)}"))

    def _signed(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, days: float, *names: str
    ) -> bytes:
        now = datetime.now(UTC)
        made = x509.CertificateBuilder(
            issuer_name=self.name,
            subject_name=subject,
            public_key=key.public_key(),
            serial_number=x509.random_serial_number(),
            not_valid_before=now - 3 * DAY,
            not_valid_after=now + days * DAY,
        ).add_extension(x509.BasicConstraints(ca=not names, path_length=None), critical=True)
        if names:
            alternatives = x509.SubjectAlternativeName([_alternative(name) for name in names])
            made = made.add_extension(alternatives, critical=False)
        return made.sign(self.key, hashes.SHA256()).public_bytes(Encoding.PEM)

    def write(self, folder: Path, name: str = "127.0.0.1", *, days: float = 1) -> Paths:
        """The three files in `folder`, each replaced in one step."""
        key = _key()
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        folder.mkdir(exist_ok=True)
        paths = Paths(folder / "tls.crt", folder / "tls.key", folder / "ca.crt")
        for path, content in (
            (paths.certificate, self._signed(_name("test process"), key, days, name)),
            (paths.key, pem),
            (paths.authority, self._signed(self.name, self.key, 10)),
        ):
            draft = path.with_suffix(".new")
            draft.touch(0o600)
            draft.write_bytes(content)
            draft.replace(path)
        return paths


def told(paths: Paths) -> dict[str, str]:
    """The variables that a process is told the files by."""
    return {
        "SLUICE_TLS_CERTIFICATE": str(paths.certificate),
        "SLUICE_TLS_KEY": str(paths.key),
        "SLUICE_TLS_AUTHORITY": str(paths.authority),
    }
