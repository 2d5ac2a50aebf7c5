#!/bin/bash
# Installs the platform of a folder on a node, or with --upgrade, upgrades it. Runs as root:
#
#     bash platform_install.sh --no-block | --upgrade ROLE
#
# and again after a failure, or a reboot in the middle. Prints what the platform's own ./install or ./upgrade prints,
# and ends with its status. An upgrade has the earlier version in CLUSTER_OLD_VERSION. It keeps the node's environment,
# config.json and the cluster's secret. Only when it has succeeded does version.json change.
# Values: BOOTSTRAP_URL, a secret; SUM, the SHA-256 of platform.tar.gz; HAS_PUBLIC_DETECTOR, yes or no; CHECK_TEXT,
# check-node.sh; VERSION_JSON, PLATFORM_JSON and WEB_JSON, texts of files; SECRET_FILES, LOG_UNITS and LOG_FILES, lines.

set -euo pipefail
root=/opt/cluster-platform
fetched=$root/.fetched

fail() {
  printf 'Cannot install the platform: %s.\n' "$*" >&2
  exit 1
}

# fetch NAME, from the bootstrap server. Its URL is a secret, so it appears in no argument list. The server may be down
# for a while, because the first master restarts; but it never gets a file that it lacks.
fetch() {
  local status deadline=$((SECONDS + 600))
  while :; do
    status=0
    curl -fsS --noproxy '*' --connect-timeout 10 --speed-limit 1 --speed-time 60 --config - -o "$1" <<END || status=$?
url = "$BOOTSTRAP_URL/$1"
END
    [ "$status" != 0 ] || return 0
    if [ "$status" = 22 ] || [ "$SECONDS" -ge "$deadline" ]; then return 1; fi
    sleep 2
  done
}

# detect NAME: runs a script that prints an address.
detect() {
  local found
  chmod 700 "$1"
  found=$(timeout 60 "./$1" </dev/null) || return 1
  [[ $found =~ ^[0-9]{1,3}(\.[0-9]{1,3}){3}$ ]] || return 1
  printf '%s\n' "$found"
}

# fetch_files NAME...
fetch_files() {
  local name
  rm -rf "$fetched"
  mkdir -m 700 "$fetched"
  cd "$fetched"
  for name in "$@"; do
    fetch "$name" || fail "the bootstrap server does not provide $name"
  done
  echo "$SUM  platform.tar.gz" | sha256sum --check --status || fail 'platform.tar.gz is damaged'
}

fetch_node() {
  local address public
  address=$(detect ip-detect) || fail 'ip-detect does not print the private address of this node'
  fetch "node-$address.env" || fail "the address of this node, $address, is none of the cluster"
  public=$address
  if [ "$HAS_PUBLIC_DETECTOR" = yes ] && fetch ip-detect-public; then
    public=$(detect ip-detect-public) || public=$address
  fi
  mv "node-$address.env" environment
  printf "export CLUSTER_PUBLIC_ADDRESS='%s'\n" "$public" >>environment
}

# The folder is complete or absent. If an earlier attempt was interrupted, everything in it is new.
unpack() {
  rm -rf "$fetched/folder"
  mkdir "$fetched/folder"
  tar -x -z -f platform.tar.gz --no-same-owner -C "$fetched/folder" || fail 'the files cannot be unpacked'
  rm -rf "$root/folder"
  mv "$fetched/folder" "$root/folder"
}

# put NAME MODE: writes what comes from stdin.
put() {
  rm -f "$fetched/new"
  (umask 077 && cat >"$fetched/new")
  chmod "$2" "$fetched/new"
  mv -f "$fetched/new" "$root/$1"
}

write_node_files() {
  chmod 644 environment
  chmod 600 secret config.json
  mv -f environment secret config.json "$root/"
}

write_version() { printf '%s\n' "$VERSION_JSON" | put version.json 0644; }

write_facts() {
  printf '%s\n' "$PLATFORM_JSON" | put platform.json 0644
  printf '%s\n' "$WEB_JSON" | put web.json 0644
  printf '%s' "$SECRET_FILES" | put secret-files 0644
  printf '%s' "$LOG_UNITS" | put log-units 0644
  printf '%s' "$LOG_FILES" | put log-files 0644
  printf '#!/bin/bash\n%s' "$CHECK_TEXT" | put check-node 0755
}

# run PROGRAM ROLE
run() {
  cd "$root/folder" || return
  # shellcheck source=/dev/null
  . "$root/environment"
  "./$1" "$2" </dev/null
}

install() {
  fetch_files ip-detect secret config.json platform.tar.gz
  fetch_node
  unpack
  write_node_files
  write_version
  write_facts
  rm -rf "$fetched"
  run install "$role" || exit
  : >"$root/installed"
}

upgrade() {
  [ -e "$root/installed" ] || fail 'it is not installed on this node'
  export CLUSTER_OLD_VERSION
  fetch_files platform.tar.gz
  unpack
  rm -f platform.tar.gz
  write_facts
  run upgrade "$role" || exit
  write_version
  rm -rf "$fetched"
}

mode=install
[ "${1:-}" != --upgrade ] || mode=upgrade
case ${1:-} in --no-block | --upgrade) shift ;; esac
role=${1:-}
case $role in
  master | agent | public_agent) ;;
  *) fail 'the role must be master, agent or public_agent' ;;
esac
[ "$mode" = upgrade ] || [ ! -e "$root/installed" ] || exit 0
umask 022
mkdir -p "$root"
chmod 755 "$root"
"$mode"
