# Runs in pytest on your computer. Copy this file beside your tests: each test with the argument `cluster` gets the
# cluster as it was when the platform was ready. If the test fails, the nodes' logs are in a folder of logs/.

import json
import os
import re
import subprocess

import pytest
import testinfra

# Change these two lines.
PROGRAM = "cluster-container"
PLATFORM = "./platform"


class Cluster(object):
    def __init__(self, folder):
        self.ssh_config = str(folder.join("cluster.ssh"))
        self.env = dict(os.environ, CLUSTER_ID="pytest-%d" % os.getpid())

    def command(self, *words):
        """Runs a command such as ("node", "stop", "master_0"), and returns its standard output."""
        return subprocess.check_output((PROGRAM,) + words, env=self.env, universal_newlines=True)

    def host(self, node):
        """A node for testinfra."""
        return testinfra.get_host("ssh://" + node, ssh_config=self.ssh_config)

    def hosts(self):
        nodes = json.loads(self.command("inspect", "--output", "json"))["cluster"]["nodes"]
        return [self.host(node["reference"]) for node in nodes]


@pytest.fixture(scope="session")
def installed(tmpdir_factory):
    cluster = Cluster(tmpdir_factory.mktemp("cluster"))
    try:
        cluster.command("create", "--wait", PLATFORM)
        cluster.command("snapshot", "create", "ready")
        yield cluster
    finally:
        cluster.command("destroy", "--if-exists", "--yes")


@pytest.fixture
def cluster(installed):
    installed.command("snapshot", "restore", "ready")
    installed.command("wait")
    with open(installed.ssh_config, "w") as file:
        file.write(installed.command("inspect", "--output", "ssh-config"))
    return installed


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    outcome = yield
    used = getattr(item, "funcargs", {}).get("cluster")
    if used is not None and outcome.get_result().failed:
        subprocess.call((PROGRAM, "logs", "--output-dir", "logs/" + re.sub(r"\W+", "-", item.name)), env=used.env)
