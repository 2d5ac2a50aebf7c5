"""A test as a release brings it along: what its runner needs stands in the environment."""

import os


def test_masters_are_known() -> None:
    assert os.environ["MASTER_HOSTS"].split(",")
    assert os.environ["DCOS_DNS_ADDRESS"].startswith("http://")
