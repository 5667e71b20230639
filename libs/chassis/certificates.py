"""The certificate that a process shows to others, and the authority that it believes, from files.

Files are looked at whenever a connection or a call begins. What was renewed on disk counts from
then on; what does not hold together, as in the middle of a change, does not count.
"""

from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path

import structlog
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization

log = structlog.get_logger()

Signature = tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, slots=True)
class Paths:
    """PEM files: the certificate with those between it and the authority, its key, authorities."""

    certificate: Path
    key: Path
    authority: Path


@dataclass(frozen=True, slots=True)
class Credentials:
    """What the files held, in PEM. Equal while they hold the same."""

    certificate: bytes
    key: bytes
    authority: bytes
    expires: datetime


class Unusable(ValueError):
    """`file` is the field of Paths whose file does not serve; the message tells why, and no more.

    What stands in the files is not repeated: one of them is a secret.
    """

    def __init__(self, file: str, problem: str) -> None:
        super().__init__(problem)
        self.file = file


class Certificates:
    """The credentials as they are on disk now, else as they last held together.

    Raises Unusable when they do not hold together at first.
    """

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._looked = _signature(paths)
        self._held = read(paths)

    def current(self) -> Credentials:
        """Called by gRPC's threads, too: two at once read twice, and find the same."""
        now = _signature(self._paths)
        if now != self._looked:
            self._looked = now
            self._renew()
        return self._held

    def _renew(self) -> None:
        try:
            self._held = read(self._paths)
        except Unusable as error:
            path = str(getattr(self._paths, error.file))
            log.warning("certificate_not_renewed", file=path, problem=str(error))
        else:
            log.info("certificate_renewed", expires=self._held.expires.isoformat())


def read(paths: Paths) -> Credentials:
    """The files' credentials. Raises Unusable for what no other process would accept."""
    certificate, key, authority = (
        _bytes(field.name, getattr(paths, field.name)) for field in fields(Paths)
    )
    own = _certificates("certificate", paths.certificate, certificate)[0]
    _check_time("certificate", paths.certificate, own)
    # An authority whose time is over may stand beside its successor.
    issuers = _certificates("authority", paths.authority, authority)
    _check_time("authority", paths.authority, max(issuers, key=_end))
    if _private_key(paths.key, key) != own.public_key():
        raise Unusable("key", f"{paths.key} is not the key of {paths.certificate}")
    return Credentials(certificate, key, authority, own.not_valid_after_utc)


def _bytes(file: str, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise Unusable(file, f"cannot read {path}: {error.strerror}") from error


def _certificates(file: str, path: Path, pem: bytes) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(pem)
    except (ValueError, x509.InvalidVersion) as error:
        raise Unusable(file, f"{path} holds no certificate in PEM") from error


def _private_key(path: Path, pem: bytes) -> object:
    """The public half of the key."""
    try:
        return serialization.load_pem_private_key(pem, password=None).public_key()
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise Unusable("key", f"{path} holds no private key in PEM without a password") from error


def _end(certificate: x509.Certificate) -> datetime:
    return certificate.not_valid_after_utc


def _check_time(file: str, path: Path, certificate: x509.Certificate) -> None:
    now = datetime.now(UTC)
    if certificate.not_valid_after_utc <= now:
        raise Unusable(file, f"{path} expired at {certificate.not_valid_after_utc.isoformat()}")
    if certificate.not_valid_before_utc > now:
        starts = certificate.not_valid_before_utc.isoformat()
        raise Unusable(file, f"{path} is not valid before {starts}")


def _signature(paths: Paths) -> Signature:
    """Changes when a file does. Kubernetes renews a secret by moving a link, hence the inode."""
    found = []
    for field in fields(Paths):
        try:
            about = getattr(paths, field.name).stat()
        except OSError:
            found.append((0, 0, 0))
        else:
            found.append((about.st_ino, about.st_mtime_ns, about.st_size))
    return tuple(found)
