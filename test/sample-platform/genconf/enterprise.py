"""Checks the keys of the enterprise variant. The open source variant rejects them."""

import re
from pathlib import Path
from typing import Any

import authority
from configuration import inside, is_line

CA_KEYS = ("ca_certificate_path", "ca_certificate_key_path", "ca_certificate_chain_path")
ENTERPRISE_KEYS = (
    "security",
    "superuser_username",
    "superuser_password_hash",
    "license_key_contents",
    "fault_domain_enabled",
    *CA_KEYS,
)
SECURITY_MODES = ("disabled", "permissive", "strict")
DEFAULT_SECURITY = "permissive"
SHA512_CRYPT = r"\$6\$(rounds=[0-9]{4,9}\$)?[./0-9A-Za-z]{1,16}\$[./0-9A-Za-z]{86}"


def refused_keys(raw: dict[str, Any]) -> list[str]:
    return [f"{key}: is a key of the enterprise variant" for key in ENTERPRISE_KEYS if key in raw]


def problems(raw: dict[str, Any], folder: Path) -> list[str]:
    found = []
    if raw.get("security", DEFAULT_SECURITY) not in SECURITY_MODES:
        found.append(f"security: must be one of {', '.join(SECURITY_MODES)}, not {raw['security']!r}")
    if not is_line(raw.get("superuser_username")):
        found.append("superuser_username: must be a line of text")
    if not re.fullmatch(SHA512_CRYPT, str(raw.get("superuser_password_hash", ""))):
        found.append("superuser_password_hash: must be a sha512-crypt hash, as --hash-password prints")
    license_key = raw.get("license_key_contents")
    if not isinstance(license_key, str) or license_key.strip() == "":
        found.append("license_key_contents: must be set; enterprise 1.11 and later needs a license key")
    if raw.get("fault_domain_enabled", False) not in (False, "false"):
        found.append("fault_domain_enabled: must be false; this platform knows no fault domains")
    return found + ca_problems(raw, folder)


def ca_problems(raw: dict[str, Any], folder: Path) -> list[str]:
    """A certificate and its key must be given together. A chain is needed only if the certificate isn't self-signed."""
    if not any(key in raw for key in CA_KEYS):
        return []
    missing = [f"{key}: must be set, since a custom CA is given" for key in CA_KEYS[:2] if key not in raw]
    unreadable = [
        f"{key}: no readable file inside genconf/: {raw[key]}"
        for key in CA_KEYS
        if key in raw and not is_readable(inside(folder, raw[key]))
    ]
    if missing or unreadable:
        return missing + unreadable
    certificate, key, chain = custom_ca(raw, folder)
    if not authority.is_certificate_authority(certificate):
        return [f"ca_certificate_path: {certificate} is not a certificate authority's certificate, or has expired"]
    if not authority.key_fits(certificate, key):
        return [f"ca_certificate_key_path: {key} is not the key of {certificate}, or is encrypted"]
    if authority.root_certificate(certificate, chain) is None:
        return [f"ca_certificate_chain_path: must lead from {certificate} to a self-signed certificate"]
    return []


def custom_ca(raw: dict[str, Any], folder: Path) -> tuple[Path, Path, Path | None]:
    certificate, key, chain = (inside(folder, raw.get(name)) for name in CA_KEYS)
    assert certificate is not None and key is not None
    return certificate, key, chain


def is_readable(path: Path | None) -> bool:
    try:
        return path is not None and path.read_text(encoding="ascii").strip() != ""
    except (OSError, UnicodeDecodeError):
        return False
