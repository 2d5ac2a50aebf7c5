"""Generates or checks the certificate authority of an enterprise cluster, with the openssl program."""

import re
import secrets
import subprocess
import tempfile
from pathlib import Path

LIFETIME_DAYS = 3650


def openssl(*arguments: str | Path) -> str | None:
    """Returns the output of openssl, or nothing if it fails. An encrypted key fails without a prompt for its passphrase."""
    done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return done.stdout if done.returncode == 0 else None


def create(folder: Path) -> None:
    """Writes `ca.key` and the self-signed `ca.crt` into the folder."""
    made = openssl(
        *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-sha256"),
        *("-days", str(LIFETIME_DAYS), "-subj", f"/O=Sample platform/CN=Cluster CA {secrets.token_hex(4)}"),
        *("-addext", "keyUsage=critical,keyCertSign,cRLSign"),
        *("-keyout", folder / "ca.key", "-out", folder / "ca.crt"),
    )
    if made is None:
        raise RuntimeError("openssl could not make a certificate authority")


def is_certificate_authority(certificate: Path) -> bool:
    extensions = openssl("x509", "-in", certificate, "-noout", "-ext", "basicConstraints")
    return (
        extensions is not None
        and "CA:TRUE" in extensions
        and openssl("x509", "-in", certificate, "-noout", "-checkend", "0") is not None
    )


def key_fits(certificate: Path, key: Path) -> bool:
    public_half = openssl("pkey", "-in", key, "-passin", "pass:", "-pubout")
    return public_half is not None and public_half == openssl("x509", "-in", certificate, "-noout", "-pubkey")


def root_certificate(certificate: Path, chain: Path | None) -> str | None:
    """Returns the self-signed certificate (PEM) at the end of the chain, which may be the certificate itself, or None."""
    candidates = pem_blocks(certificate)[:1] + (pem_blocks(chain) if chain else [])
    for candidate in candidates:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder, "root.pem")
            root.write_text(candidate, encoding="ascii")
            others = ("-untrusted", chain) if chain else ()
            if openssl("verify", "-CAfile", root, root) and openssl("verify", "-CAfile", root, *others, certificate):
                return candidate
    return None


def pem_blocks(path: Path) -> list[str]:
    pattern = r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\n?"
    return re.findall(pattern, path.read_text(encoding="ascii"), re.DOTALL)
