"""Generates genconf/serve/ in the working folder: `python3 genconf.py VARIANT RELEASE PAYLOAD_FOLDER [INSTALLED_RELEASE]`, VARIANT being `ee` or
empty. With an installed release, adds the script that upgrades a node from it, and prints its URL.

If the configuration is invalid, prints a line `key: message` for each problem and ends with exit code 1. A real artifact does this in its
Docker image. This script uses the machine's own Python, because not every test machine can run a container inside a container.
"""

import ipaddress
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Optional

import yaml

GENCONF = Path("genconf")
MASTER_COUNTS = (1, 3, 5, 7, 9)
LISTS = ("master_list", "agent_list", "public_agent_list")
SHA512_CRYPT = r"\$6\$(rounds=[0-9]{4,9}\$)?[./0-9A-Za-z]{1,16}\$[./0-9A-Za-z]{86}"


def numbers(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


def is_ipv4(value: Any) -> bool:
    try:
        return ipaddress.ip_address(value).version == 4
    except ValueError:
        return False


def common_problems(raw: dict[str, Any]) -> list[str]:
    found = [f"{key}: must be set" for key in ("bootstrap_url", "cluster_name") if not raw.get(key)]
    found += [f"{key}: must be static" for key in ("exhibitor_storage_backend", "master_discovery") if raw.get(key) != "static"]
    for key in LISTS:
        addresses = raw.get(key, [])
        if not isinstance(addresses, list) or not all(is_ipv4(address) for address in addresses):
            found.append(f"{key}: must be a list of IPv4 addresses")
    if len(raw.get("master_list") or []) not in MASTER_COUNTS:
        found.append("master_list: must have 1, 3, 5, 7 or 9 masters")
    if not isinstance(raw.get("resolvers"), list) or not all(is_ipv4(address) for address in raw["resolvers"]):
        found.append("resolvers: must be a list of IPv4 addresses")
    return found + flag_problems(raw) + detector_problems(raw)


def flag_problems(raw: dict[str, Any]) -> list[str]:
    flags = ("check_time", "exhibitor_tls_enabled")
    return [f"{key}: must be true or false" for key in flags if str(raw.get(key, False)).lower() not in ("true", "false")]


def is_on(raw: dict[str, Any], key: str, default: bool) -> bool:
    return str(raw.get(key, default)).lower() == "true"


def detector_problems(raw: dict[str, Any]) -> list[str]:
    script = GENCONF / "ip-detect"
    if not os.access(script, os.X_OK):
        return ["ip_detect_contents: genconf/ip-detect must be an executable file"]
    done = subprocess.run([script.resolve()], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0 or not is_ipv4(done.stdout.strip()):
        return ["ip_detect_contents: genconf/ip-detect must print an IPv4 address"]
    public = raw.get("ip_detect_public_filename")
    if public is not None and not Path(str(public)).is_file():
        return [f"ip_detect_public_filename: no such file: {public}"]
    return []


# The other keys of the enterprise variant are unknown here. Unknown keys are accepted.
def open_source_problems(raw: dict[str, Any], release: str) -> list[str]:
    if "fault_domain_enabled" not in raw or numbers(release) < (1, 11):
        return []
    return ["fault_domain_enabled: must be calculated, but was explicitly set in the configuration. Remove it."]


def enterprise_problems(raw: dict[str, Any], release: str) -> list[str]:
    found = []
    if not raw.get("superuser_username"):
        found.append("superuser_username: must be set")
    if not re.fullmatch(SHA512_CRYPT, str(raw.get("superuser_password_hash", ""))):
        found.append("superuser_password_hash: must be a sha512-crypt hash")
    if raw.get("security", "permissive") not in ("disabled", "permissive", "strict"):
        found.append("security: must be disabled, permissive or strict")
    if numbers(release) >= (1, 11) and not str(raw.get("license_key_contents", "")).strip():
        found.append("license_key_contents: must be set")
    if raw.get("fault_domain_enabled") not in (True, False, "true", "false"):
        found.append("fault_domain_enabled: must be true or false")
    return found


def settings(raw: dict[str, Any], variant: str, release: str, facts: dict[str, Any]) -> dict[str, Any]:
    """Returns the settings that node/setup and the programs on the nodes read."""
    return {
        "release": release,
        "facts": facts,
        "check_time": is_on(raw, "check_time", facts["timeCheck"]["default"]),
        "needs_dig": variant == "ee" and numbers(release) >= (2, 0),
        "variant": "enterprise" if variant == "ee" else "open",
        "ssl_enabled": variant == "ee" and raw.get("security", "permissive") != "disabled",
        "masters": raw["master_list"],
        "fault": raw.get("stand_in_fault") or {"role": "", "at": ""},
        "custom_ca": "ca_certificate_path" in raw,
        "login": {key: raw.get(key, "") for key in ("superuser_username", "superuser_password_hash")},
        "token": secrets.token_hex(32),
    }


def make_authority(raw: dict[str, Any], folder: Path) -> None:
    """Returns `ca.crt`, and `ca.key` unless it is the user's: that one is copied to the masters separately."""
    if "ca_certificate_path" in raw:
        shutil.copyfile(GENCONF / Path(str(raw["ca_certificate_path"])).name, folder / "ca.crt")
        return
    words = "openssl req -x509 -newkey rsa:2048 -nodes -days 3650 -subj /O=Stand-in/CN=CA -addext keyUsage=critical,keyCertSign"
    files = ["-keyout", folder / "ca.key", "-out", folder / "ca.crt"]
    subprocess.run([*words.split(), *files], check=True, capture_output=True)


def make_bootstrap_authority(raw: dict[str, Any], variant: str, facts: dict[str, Any]) -> None:
    """Writes the files of genconf's certificate authority, which artifact.sh starts if they exist."""
    shutil.rmtree(GENCONF / "ca", ignore_errors=True)
    if variant == "ee" and "bootstrapCa" in facts and is_on(raw, "exhibitor_tls_enabled", True):
        (GENCONF / "ca").mkdir()


def write(raw: dict[str, Any], variant: str, release: str, payload: Path) -> str:
    """Returns the name of the nodes' archive."""
    serve, node = GENCONF / "serve", payload / "node"
    # A real release leaves all that it has written before, and so the scripts for other versions.
    shutil.rmtree(serve / "bootstrap", ignore_errors=True)
    (serve / "bootstrap").mkdir(parents=True)
    facts = json.loads((payload / "facts.json").read_text(encoding="utf-8"))
    settled = settings(raw, variant, release, facts)
    make_bootstrap_authority(raw, variant, facts)
    etc = node / "etc"
    etc.mkdir()
    (etc / "settings.json").write_text(json.dumps(settled), encoding="utf-8")
    shutil.copyfile(GENCONF / "ip-detect", etc / "ip-detect")
    (etc / "ip-detect").chmod(0o755)
    if settled["ssl_enabled"]:
        make_authority(raw, etc)
    identity = secrets.token_hex(20)
    archive = serve / "bootstrap" / f"{identity}.bootstrap.tar.xz"
    subprocess.run(["tar", "-c", "-J", "-f", archive, "-C", node, "."], check=True)
    script = (payload / "dcos_install.sh").read_text(encoding="utf-8")
    places = {"@BOOTSTRAP_URL@": str(raw["bootstrap_url"]), "@BOOTSTRAP_ID@": identity}
    places |= {"@FAULT_ROLE@": settled["fault"]["role"], "@FAULT_AT@": settled["fault"]["at"]}
    places |= {
        "@DOCKER_VERSION@": facts["dockerVersion"]["read"],
        "@PROGRAMS@": " ".join(facts["programs"]["names"]),
        "@NOGROUP@": "yes" if facts["nogroup"]["isChecked"] else "no",
        "@MASTER_PORTS@": " ".join(map(str, facts["ports"]["master"])),
        "@AGENT_PORTS@": " ".join(map(str, facts["ports"]["agent"])),
        "@PORT_FORMAT@": facts["portFormat"]["format"],
    }
    for place, value in places.items():
        script = script.replace(place, value)
    (serve / "dcos_install.sh").write_text(script, encoding="utf-8")
    return identity


def write_upgrade(raw: dict[str, Any], releases: tuple[str, str], payload: Path, identity: str) -> None:
    """`releases`: the installed one, and this one. Like a real release, checks nothing of the first."""
    facts = json.loads((payload / "facts.json").read_text(encoding="utf-8"))["upgrade"]
    folder = f"/upgrade/{secrets.token_hex(16)}"
    (GENCONF / "serve" / folder[1:]).mkdir(parents=True)
    script = (payload / "dcos_node_upgrade.sh").read_text(encoding="utf-8")
    places = {"@BOOTSTRAP_URL@": str(raw["bootstrap_url"]), "@BOOTSTRAP_ID@": identity, "@FLAGS@": " ".join(facts["flags"])}
    places |= {"@IS_CHECKED@": "yes" if facts["isChecked"] else "no", "@INSTALLED@": releases[0], "@RELEASE@": releases[1]}
    for place, value in places.items():
        script = script.replace(place, value)
    (GENCONF / "serve" / folder[1:] / "dcos_node_upgrade.sh").write_text(script, encoding="utf-8")
    print(f"{facts['linePrefix']}{raw['bootstrap_url']}{folder}/dcos_node_upgrade.sh")


def main(variant: str, release: str, payload: Path, installed: Optional[str]) -> int:
    try:
        raw = yaml.safe_load((GENCONF / "config.yaml").read_text(encoding="utf-8"))
    except FileNotFoundError:
        print(f"No config file found at {GENCONF}/config.yaml.")
        return 1
    own = enterprise_problems(raw, release) if variant == "ee" else open_source_problems(raw, release)
    problems = common_problems(raw) + own
    if problems:
        print("\n".join(problems), file=sys.stderr)
        return 1
    identity = write(raw, variant, release, payload)
    if installed is not None:
        write_upgrade(raw, (installed, release), payload, identity)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4] if len(sys.argv) > 4 else None))
