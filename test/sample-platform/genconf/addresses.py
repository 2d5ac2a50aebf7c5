"""Checks all IP addresses in the configuration, and the script that determines a node's own address."""

import ipaddress
import os
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

from configuration import ROLES

LISTS = tuple(f"{role}_list" for role in ROLES)
MASTER_COUNTS = (1, 3, 5, 7, 9)
DETECT_SECONDS = 30


def problems(raw: dict[str, Any], folder: Path) -> list[str]:
    found = [problem for key in LISTS for problem in list_problems(raw, key)]
    masters = raw.get("master_list")
    if isinstance(masters, list) and len(masters) not in MASTER_COUNTS:
        found.append(f"master_list: must hold 1, 3, 5, 7 or 9 addresses, not {len(masters)}")
    found += [
        f"{key}: {address!r} is not an IP address"
        for key in ("resolvers",)
        for address in as_list(raw.get(key))
        if not is_address(address)
    ]
    if not isinstance(raw.get("resolvers"), list):
        found.append("resolvers: must be a list of IP addresses")
    return found + duplicate_problems(raw) + detect_problems(folder / "ip-detect")


def list_problems(raw: dict[str, Any], key: str) -> list[str]:
    if not isinstance(raw.get(key), list):
        return [f"{key}: must be a list of IPv4 addresses"]
    return [f"{key}: {address!r} is not an IPv4 address" for address in raw[key] if not is_ipv4(address)]


def duplicate_problems(raw: dict[str, Any]) -> list[str]:
    places = [(str(address), key) for key in LISTS for address in as_list(raw.get(key))]
    counts = Counter(address for address, _ in places)
    return [
        f"{key}: {address} is listed {counts[address]} times; a node has one role"
        for address, key in dict(places).items()
        if counts[address] > 1
    ]


def detect_problems(script: Path) -> list[str]:
    if not script.is_file() or not os.access(script, os.X_OK):
        return ["ip-detect: genconf/ip-detect must be an executable file"]
    try:
        done = subprocess.run(
            [script.resolve()], capture_output=True, text=True, timeout=DETECT_SECONDS, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return [f"ip-detect: cannot be run: {error}"]
    if done.returncode != 0:
        return [f"ip-detect: ended with {done.returncode}: {' '.join(done.stderr.split())}"]
    if not is_ipv4(done.stdout.strip()):
        return [f"ip-detect: printed {done.stdout.strip()!r}, not an IPv4 address"]
    return []


def is_address(value: Any) -> bool:
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return False
    return isinstance(value, str)


def is_ipv4(value: Any) -> bool:
    return is_address(value) and ipaddress.ip_address(value).version == 4


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
