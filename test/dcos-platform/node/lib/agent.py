"""An agent, which keeps registering with every master: `python3 agent.py slave|slave_public`."""

import json
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import machine

ETC = Path("/opt/mesosphere/etc")
SETTINGS = json.loads((ETC / "settings.json").read_text(encoding="utf-8"))
ADDRESS = subprocess.run([ETC / "ip-detect"], capture_output=True, text=True, check=True).stdout.strip()
BODY = json.dumps({"hostname": ADDRESS, "attributes": {"public_ip": "true"} if sys.argv[1] == "slave_public" else {}}).encode()


def register() -> bool:
    # Ignore proxies in the environment.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        for master in SETTINGS["masters"]:
            opener.open(f"http://{master}:5050/register", data=BODY, timeout=5).close()
    except OSError:
        return False
    return True


machine.check(sys.argv[1])
while True:
    if register():
        Path("/run/dcos-registered").touch()
    time.sleep(1)
