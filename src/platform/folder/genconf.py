# Writes genconf/serve/platform_install.sh, with which the nodes install the platform of a folder. Runs as root on the first master, by
# artifact.sh, in the folder that has genconf/, on Python 2.7 or later. Prints nothing; or, on stderr, a line
# "KEY: MESSAGE" for each problem with the configuration, and ends with status 1.
#
#     genconf/config.yaml    the configuration, as JSON
#     genconf/ip-detect      a script that prints a node's private address; ip-detect-public is optional
#
# Environment: SUM, the SHA-256 of platform.tar.gz, which artifact.sh adds; VERSION_JSON and PLATFORM_JSON, facts about
# the platform; INSTALL_TEXT, install.sh; CHECK_TEXT, check-node.sh.

import binascii
import io
import json
import os
import re
import sys

SERVE = "genconf/serve"
# Stays the same if this runs again.
SECRET = "genconf/secret"
ROOT = "/opt/cluster-platform"
ROLES = (("master", "master_list"), ("agent", "agent_list"), ("public_agent", "public_agent_list"))
# Below this key is what the user provided, for the platform's own scripts. The product itself configures the rest.
OWN_KEY = "extra_config"
ADDRESS = re.compile(r"^[0-9]{1,3}(\.[0-9]{1,3}){3}$")


def is_text(value):
    return isinstance(value, type(u""))


def read_configuration():
    try:
        with io.open("genconf/config.yaml", encoding="utf-8") as source:
            found = json.load(source)
    except (IOError, OSError):
        refuse(["config.yaml: cannot be read"])
    except ValueError:
        refuse(["config.yaml: is not JSON"])
    if not isinstance(found, dict):
        refuse(["config.yaml: is not a mapping"])
    return found


def refuse(problems):
    sys.stderr.write("".join(line + "\n" for line in problems))
    sys.exit(1)


def problems_of(configuration):
    problems = []
    url = configuration.get("bootstrap_url")
    if not is_text(url) or not re.match(r'^https?://[^\s"\\]+$', url):
        problems.append("bootstrap_url: must be a URL (http)")
    name = configuration.get("cluster_name")
    if not is_text(name) or not re.match(r"^[^\x00-\x1f\x7f]{1,200}$", name):
        problems.append("cluster_name: must be one line of text")
    seen = set()
    for role, key in ROLES:
        addresses = configuration.get(key, [])
        if not isinstance(addresses, list) or not all(is_text(each) and ADDRESS.match(each) for each in addresses):
            problems.append(key + ": must be a list of IPv4 addresses")
            continue
        if role == "master" and not addresses:
            problems.append(key + ": must not be empty")
        for address in addresses:
            if address in seen:
                problems.append("%s: %s is listed twice" % (key, address))
            seen.add(address)
    if not isinstance(configuration.get(OWN_KEY, {}), dict):
        problems.append(OWN_KEY + ": must be a mapping")
    if not os.path.isfile("genconf/ip-detect"):
        problems.append("ip-detect: genconf/ip-detect does not exist")
    return problems


def quote(text):
    return u"'" + text.replace(u"'", u"'\\''") + u"'"


def shared_environment(configuration):
    """The lines that the environments of all nodes begin with."""
    lists = [u" ".join(configuration.get(key, [])) for _, key in ROLES]
    shared = [
        (u"CLUSTER_ID", configuration["cluster_name"]),
        (u"CLUSTER_MASTERS", lists[0]),
        (u"CLUSTER_AGENTS", lists[1]),
        (u"CLUSTER_PUBLIC_AGENTS", lists[2]),
        (u"CLUSTER_CONFIG_FILE", u"%s/config.json" % ROOT),
        (u"CLUSTER_SECRET_FILE", u"%s/secret" % ROOT),
    ]
    return u"".join(u"export %s=%s\n" % (name, quote(value)) for name, value in shared)


def install_script(configuration, secret):
    facts = json.loads(os.environ["PLATFORM_JSON"])
    logs = facts.get("logs", {})
    web = facts.get("web")
    shown = None if web is None else {"port": web["port"], "path": web.get("path", "/")}
    web_facts = {"ssl_enabled": web is not None and web.get("scheme") == "https", "web": shown}
    config = json.dumps(configuration.get(OWN_KEY, {}), indent=2, sort_keys=True)
    values = [(name, variable(name)) for name in ("SUM", "VERSION_JSON", "PLATFORM_JSON", "CHECK_TEXT")] + [
        (u"BOOTSTRAP_URL", configuration["bootstrap_url"].rstrip(u"/")),
        (u"ENVIRONMENT", shared_environment(configuration)),
        (u"NODES", lines("%s %s" % (role, u" ".join(configuration.get(key, []))) for role, key in ROLES)),
        (u"SECRET", secret),
        (u"CONFIG_JSON", u"%s" % config),
        (u"WEB_JSON", u"%s" % json.dumps(web_facts, sort_keys=True)),
        (u"SECRET_FILES", lines(facts.get("secrets", []))),
        (u"LOG_UNITS", lines(logs.get("units", []))),
        (u"LOG_FILES", lines(logs.get("files", []))),
        (u"DETECTOR", encoded("genconf/ip-detect")),
        (u"PUBLIC_DETECTOR", encoded("genconf/ip-detect-public")),
    ]
    assignments = u"".join(u"%s=%s\n" % (name, quote(value)) for name, value in values)
    return u"#!/bin/bash\n" + assignments + variable("INSTALL_TEXT")


def encoded(path):
    """A file in base64, because it may be any program; empty if there is none."""
    return binascii.b2a_base64(read(path)).decode("ascii").strip() if os.path.isfile(path) else u""


def variable(name):
    """These texts are ASCII, so that no locale matters."""
    value = os.environ[name]
    return value if is_text(value) else value.decode("ascii")


def lines(texts):
    return u"".join(u"%s\n" % text for text in texts)


def write(path, content):
    """A file is there completely or not at all, also if this program is interrupted."""
    with io.open(path + ".new", "wb") as target:
        target.write(content)
    os.rename(path + ".new", path)


def read(path):
    with io.open(path, "rb") as source:
        return source.read()


def main():
    os.umask(0o077)
    configuration = read_configuration()
    problems = problems_of(configuration)
    if problems:
        refuse(problems)
    if not os.path.isdir(SERVE):
        os.makedirs(SERVE)
    if not os.path.isfile(SECRET):
        write(SECRET, binascii.hexlify(os.urandom(32)))
    script = install_script(configuration, read(SECRET).decode("ascii"))
    write(SERVE + "/platform_install.sh", script.encode("utf-8"))


main()
