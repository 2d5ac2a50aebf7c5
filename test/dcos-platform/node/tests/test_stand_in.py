"""A test that is part of a release. Its runner reads the environment. It can also run alone: `python3 test_stand_in.py`."""

import os


def test_masters_are_known() -> None:
    assert os.environ["MASTER_HOSTS"].split(",")
    assert os.environ["DCOS_DNS_ADDRESS"].startswith("http://")


def test_hosts_are_waited_for() -> None:
    if os.environ.get("WAIT_FOR_HOSTS", "true") == "true":
        for name in ("SLAVE_HOSTS", "PUBLIC_SLAVE_HOSTS"):
            assert os.environ[name], f"{name} is empty"


if __name__ == "__main__":
    test_masters_are_known()
    test_hosts_are_waited_for()
    print("2 passed")
