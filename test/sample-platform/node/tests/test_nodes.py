"""Integration tests of a running cluster, from one of its masters: `python3 -m unittest`.

They read the cluster's nodes and login from the environment (MASTER_HOSTS, CLUSTER_NUM_AGENTS, CLUSTER_LOGIN_UNAME, CLUSTER_LOGIN_PW).
"""

import json
import os
import ssl
import subprocess
import unittest
import urllib.request
from pathlib import Path
from typing import Any

from cluster_internal_utils import slurm

ETC = Path("/opt/cluster/etc")
JOB_SECONDS = 60


def ask(host: str, path: str, headers: dict[str, str], body: bytes | None = None) -> Any:
    """Gets JSON from a master: over HTTPS, verified with the cluster's own CA, if the cluster has one."""
    is_encrypted = json.loads((ETC / "bootstrap-config.json").read_text())["ssl_enabled"]
    trust = ssl.create_default_context(cafile=ETC / "cluster-ca.crt") if is_encrypted else None
    request = urllib.request.Request(f"{'https' if is_encrypted else 'http'}://{host}{path}", body, headers)
    with urllib.request.urlopen(request, timeout=30, context=trust) as answer:
        return json.load(answer)


def log_in(host: str) -> str:
    body = json.dumps({"uid": os.environ["CLUSTER_LOGIN_UNAME"], "password": os.environ["CLUSTER_LOGIN_PW"]}).encode()
    return ask(host, "/acs/api/v1/auth/login", {"Content-Type": "application/json"}, body)["token"]


class Nodes(unittest.TestCase):
    def test_the_controller_answers(self) -> None:
        self.assertTrue(slurm.controller_answers())

    @unittest.skipUnless("CLUSTER_NUM_AGENTS" in os.environ, "CLUSTER_NUM_AGENTS is not set")
    def test_all_agents_are_registered(self) -> None:
        registered = [node for node in slurm.nodes() if node["registered"]]
        self.assertEqual(len(registered), int(os.environ["CLUSTER_NUM_AGENTS"]))

    def test_a_job_runs_on_every_node_of_a_partition(self) -> None:
        for partition in ("agents", "public"):
            names = sorted(node["name"] for node in slurm.nodes() if node["partition"] == partition)
            if not names:
                continue
            with self.subTest(partition=partition):
                command = ["srun", f"--partition={partition}", f"--nodes={len(names)}", "printenv", "SLURMD_NODENAME"]
                done = subprocess.run(command, capture_output=True, text=True, timeout=JOB_SECONDS)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(sorted(done.stdout.split()), names)

    @unittest.skipUnless("MASTER_HOSTS" in os.environ, "MASTER_HOSTS is not set")
    def test_every_master_lists_the_registered_agents(self) -> None:
        registered = sorted(node["name"] for node in slurm.nodes() if node["registered"])
        for host in os.environ["MASTER_HOSTS"].split(","):
            with self.subTest(host=host):
                headers = {}
                if "CLUSTER_LOGIN_UNAME" in os.environ:
                    headers["Authorization"] = f"token={log_in(host)}"
                listed = ask(host, "/nodes", headers)
                self.assertEqual(sorted(node["name"] for node in listed), registered)


if __name__ == "__main__":
    unittest.main()
