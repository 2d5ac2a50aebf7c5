"""Writes genconf/serve/, the folder that the bootstrap server serves to the nodes.

    cluster_install.sh   the script for each node; contains the checksums of the others
    software.tar         packages and files, straight from the artifact
    node.tar             this cluster's configuration, for every node
    master.tar           for masters only: superuser, license, the generated CA

The last two contain secrets (munge key, hashes, keys) and have mode 0600, so only the folder's owner can serve them.
"""

import hashlib
import io
import json
import secrets
import shlex
import shutil
import tarfile
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import authority
import enterprise
from configuration import ROLES, inside
from slurm import Member, slurm_conf

MUNGE_KEY_BYTES = 128


class Release(NamedTuple):
    variant: str
    version: str
    software: Path


class Entry(NamedTuple):
    """A file in a tar archive. Its mode is 0600 unless everyone may read or run it."""

    content: bytes
    mode: int = 0o600


def write(raw: dict[str, Any], release: Release, folder: Path) -> None:
    target = folder / "serve"
    new = Path(tempfile.mkdtemp(prefix=".serve.", dir=folder))
    try:
        shutil.copyfile(release.software / "software.tar", new / "software.tar")
        write_tar(new / "node.tar", node_entries(raw, release, folder))
        write_tar(new / "master.tar", master_entries(raw, release, folder))
        template = (release.software / "install" / "cluster_install.sh").read_text(encoding="utf-8")
        (new / "cluster_install.sh").write_text(install_script(template, raw, new), encoding="utf-8")
        for public in (new, new / "software.tar", new / "cluster_install.sh"):
            public.chmod(0o755 if public == new else 0o644)
        shutil.rmtree(target, ignore_errors=True)
        new.rename(target)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def members(raw: dict[str, Any]) -> list[Member]:
    """Returns all nodes, masters first, named by their position in the lists: master-0, agent-1, public-agent-0."""
    return [
        Member(f"{role.replace('_', '-')}-{index}", role, address)
        for role in ROLES
        for index, address in enumerate(raw[f"{role}_list"])
    ]


def security_mode(raw: dict[str, Any], variant: str) -> str:
    return raw.get("security", enterprise.DEFAULT_SECURITY) if variant == "enterprise" else "disabled"


def node_entries(raw: dict[str, Any], release: Release, folder: Path) -> dict[str, Entry]:
    nodes = members(raw)
    security = security_mode(raw, release.variant)
    cluster = {
        "name": raw["cluster_name"],
        "variant": release.variant,
        "version": release.version,
        "security": security,
        "nodes": [node._asdict() for node in nodes],
    }
    entries = {
        "nodes": text("".join(f"{node.role} {node.address} {node.name}\n" for node in nodes)),
        "settings": text(settings(raw, security)),
        "slurm.conf": text(slurm_conf(nodes), 0o644),
        "munge.key": Entry(secrets.token_bytes(MUNGE_KEY_BYTES)),
        "ip-detect": Entry((folder / "ip-detect").read_bytes(), 0o755),
        "etc/cluster.json": as_json(cluster),
        "etc/version.json": as_json({"variant": release.variant, "version": release.version}),
        "etc/bootstrap-config.json": as_json({"ssl_enabled": security != "disabled", "security": security}),
    }
    public_detector = inside(folder, raw.get("ip_detect_public_filename")) or folder / "ip-detect-public"
    if public_detector.is_file():
        entries["ip-detect-public"] = Entry(public_detector.read_bytes(), 0o755)
    return entries


def settings(raw: dict[str, Any], security: str) -> str:
    """Returns shell assignments for the install script."""
    fault = raw.get("fault_injection") or {"role": "", "message": ""}
    values = {
        "security": security,
        "custom_ca": "yes" if enterprise.CA_KEYS[0] in raw else "no",
        "fault_role": fault["role"],
        "fault_message": fault["message"],
    }
    return "".join(f"{name}={shlex.quote(value)}\n" for name, value in values.items())


def master_entries(raw: dict[str, Any], release: Release, folder: Path) -> dict[str, Entry]:
    if release.variant != "enterprise":
        return {"login.json": as_json({"required": False}, 0o600)}
    login = {
        "required": True,
        "uid": raw["superuser_username"],
        "hash": raw["superuser_password_hash"],
        "token_secret": secrets.token_hex(32),
    }
    license_key = text(raw["license_key_contents"])
    return {"login.json": as_json(login, 0o600), "license": license_key, **authority_entries(raw, folder)}


def authority_entries(raw: dict[str, Any], folder: Path) -> dict[str, Entry]:
    """Returns the issuer of the masters' certificates, the chain from it to the root, and the root, which users trust.

    The key of a custom CA isn't included: it is copied to the masters without the bootstrap server.
    """
    if enterprise.CA_KEYS[0] not in raw:
        with tempfile.TemporaryDirectory() as made:
            authority.create(Path(made))
            certificate = Path(made, "ca.crt").read_text(encoding="ascii")
            key = Path(made, "ca.key").read_bytes()
        return {"ca.key": Entry(key), "issuer.crt": text(certificate), "chain.crt": text(""), "root.crt": text(certificate)}
    certificate_path, _, chain_path = enterprise.custom_ca(raw, folder)
    issuer = authority.pem_blocks(certificate_path)[0]
    links = authority.pem_blocks(chain_path) if chain_path else []
    return {
        "issuer.crt": text(issuer),
        "chain.crt": text("\n".join([issuer, *(link for link in links if link.strip() != issuer.strip())])),
        "root.crt": text(authority.root_certificate(certificate_path, chain_path) or issuer),
    }


def install_script(template: str, raw: dict[str, Any], folder: Path) -> str:
    values = {"@BOOTSTRAP_URL@": raw["bootstrap_url"].rstrip("/")}
    for name in ("software", "node", "master"):
        values[f"@{name.upper()}_SHA256@"] = hashlib.sha256((folder / f"{name}.tar").read_bytes()).hexdigest()
    for placeholder, value in values.items():
        template = template.replace(f"'{placeholder}'", shlex.quote(value))
    return template


def text(content: str, mode: int = 0o600) -> Entry:
    return Entry(content.encode(), mode)


def as_json(value: dict[str, Any], mode: int = 0o644) -> Entry:
    return text(json.dumps(value, indent=2) + "\n", mode)


def write_tar(path: Path, entries: dict[str, Entry]) -> None:
    with tarfile.open(path, "w") as archive:
        for name, entry in entries.items():
            member = tarfile.TarInfo(name)
            member.size = len(entry.content)
            member.mode = entry.mode
            archive.addfile(member, io.BytesIO(entry.content))
