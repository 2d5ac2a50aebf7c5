"""The state of the cluster for the web interface. Results are cached for a moment, so that many clients cause few queries."""

import json
import threading
import time
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from cluster_internal_utils import slurm

CONFIGURATION = Path("/opt/cluster/etc/cluster.json")
KEEP_SECONDS = 1.0
PROBE_SECONDS = 2.0


class Kept:
    """A cached value. If it is too old, one thread refreshes it while the others wait."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make
        self.lock = threading.Lock()
        self.value: Any = None
        self.made_at = float("-inf")

    def get(self) -> Any:
        with self.lock:
            if time.monotonic() - self.made_at > KEEP_SECONDS:
                self.value = self.make()
                self.made_at = time.monotonic()
            return self.value


def registered() -> list[dict[str, str]]:
    """Returns the agents and public agents that answer the controller."""
    found = {node["name"]: node for node in KEPT_NODES.get()}
    return [
        {"name": member["name"], "role": member["role"], "address": member["address"], "state": found[member["name"]]["state"]}
        for member in configured()["nodes"]
        if member["name"] in found and found[member["name"]]["registered"]
    ]


def overview() -> dict[str, Any]:
    return KEPT_OVERVIEW.get()


def make_overview() -> dict[str, Any]:
    configuration = configured()
    masters = [member for member in configuration["nodes"] if member["role"] == "master"]
    try:
        states = {node["name"]: node["state"] for node in KEPT_NODES.get()}
        queue, problem = slurm.queue(), None
    except slurm.Unavailable as error:
        states, queue, problem = {}, [], str(error)
    with ThreadPoolExecutor(max_workers=len(masters)) as pool:
        answers = pool.map(lambda member: answers_http(member["address"]), masters)
    return {
        "cluster": {key: configuration[key] for key in ("name", "variant", "version", "security")},
        "problem": problem,
        "masters": [
            {**member, "state": "up" if up else "down", "controller": index == 0}
            for index, (member, up) in enumerate(zip(masters, answers))
        ],
        "agents": [
            {**member, "state": states.get(member["name"], "unknown")}
            for member in configuration["nodes"]
            if member["role"] != "master"
        ],
        "queue": queue,
    }


def configured() -> dict[str, Any]:
    return json.loads(CONFIGURATION.read_text(encoding="utf-8"))


def answers_http(address: str) -> bool:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"http://{address}/health", timeout=PROBE_SECONDS) as answer:
            return answer.status == 200
    except OSError:
        return False


KEPT_NODES = Kept(slurm.nodes)
KEPT_OVERVIEW = Kept(make_overview)
