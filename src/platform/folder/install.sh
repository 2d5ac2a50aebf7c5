#!/bin/bash
# Installs the platform of a folder on a node, or with --upgrade, upgrades it. Runs as root:
#
#     bash platform_install.sh --no-block | --upgrade ROLE
#
# and again after a failure, or a reboot in the middle. Prints what the platform's own ./install or ./upgrade prints,
# and ends with its status. An upgrade has the earlier version in CLUSTER_OLD_VERSION. It keeps the node's environment,
# config.json and the cluster's secret. Only when it has succeeded does version.json change.
# Values: BOOTSTRAP_URL, a secret; SUM, the SHA-256 of platform.tar.gz; ENVIRONMENT, what all nodes share of it; NODES, a
# line for each role, with its name and the addresses of its nodes; SECRET; DETECTOR and PUBLIC_DETECTOR, programs in
# base64; CHECK_TEXT, check-node.sh; CONFIG_JSON, VERSION_JSON, PLATFORM_JSON and WEB_JSON, texts of files; SECRET_FILES,
# LOG_UNITS and LOG_FILES, lines.

set -euo pipefail
root=/opt/cluster-platform
fetched=$root/.fetched

fail() {
  printf 'Cannot install the platform: %s.\n' "$*" >&2
  exit 1
}

# Seconds since the machine's boot, because its clock may be set at any time.
uptime_now() {
  local uptime
  read -r uptime _ </proc/uptime
  printf '%s\n' "${uptime%.*}"
}

# fetch NAME, from the bootstrap server. Its URL is a secret, so it appears in no argument list. The server may be down
# for a while, because the first master restarts; but it never gets a file that it lacks.
fetch() {
  local status deadline
  deadline=$(($(uptime_now) + 600))
  while :; do
    status=0
    curl -fsS --noproxy '*' --connect-timeout 10 --speed-limit 1 --speed-time 60 --config - -o "$1" <<END || status=$?
url = "$BOOTSTRAP_URL/$1"
END
    [ "$status" != 0 ] || return 0
    [ "$status" != 23 ] || fail "$1 cannot be written to $fetched"
    if [ "$status" = 22 ] || [ "$(uptime_now)" -ge "$deadline" ]; then return 1; fi
    sleep 2
  done
}

# detect DETECTOR: prints the address that it prints.
detect() {
  local found
  base64 -d <<<"$1" >detector
  chmod 700 detector
  found=$(timeout 60 ./detector </dev/null) || return 1
  [[ $found =~ ^[0-9]{1,3}(\.[0-9]{1,3}){3}$ ]] || return 1
  printf '%s\n' "$found"
}

fetch_files() {
  rm -rf "$fetched"
  mkdir -m 700 "$fetched"
  cd "$fetched"
  fetch platform.tar.gz || fail 'the bootstrap server does not provide platform.tar.gz'
  echo "$SUM  platform.tar.gz" | sha256sum --check --status || fail 'platform.tar.gz is damaged'
}

# node_at ADDRESS: prints its role and index.
node_at() {
  local name addresses address index
  while read -r name addresses; do
    index=0
    for address in $addresses; do
      [ "$address" != "$1" ] || printf '%s %d\n' "$name" "$index"
      index=$((index + 1))
    done
  done <<<"$NODES"
}

write_environment() {
  local address public role index
  address=$(detect "$DETECTOR") || fail 'ip-detect does not print the private address of this node'
  read -r role index < <(node_at "$address") || fail "the address of this node, $address, is none of the cluster"
  public=$address
  [ -z "$PUBLIC_DETECTOR" ] || public=$(detect "$PUBLIC_DETECTOR") || public=$address
  put environment 644 "${ENVIRONMENT}export CLUSTER_NODE='${role}_$index'
export CLUSTER_ROLE='$role'
export CLUSTER_INDEX='$index'
export CLUSTER_PRIVATE_ADDRESS='$address'
export CLUSTER_PUBLIC_ADDRESS='$public'
"
}

# The folder is complete or absent. If an earlier attempt was interrupted, everything in it is new.
unpack() {
  rm -rf "$fetched/folder"
  mkdir "$fetched/folder"
  tar -x -z -f platform.tar.gz --no-same-owner -C "$fetched/folder" || fail 'the files cannot be unpacked'
  rm -rf "$root/folder"
  mv "$fetched/folder" "$root/folder"
}

# put NAME 600|644|755 TEXT: writes a file completely or not at all. Starts few programs: nodes may share processors.
put() {
  [ "$2" != 600 ] || umask 077
  printf '%s' "$3" >"$fetched/new"
  umask 022
  [ "$2" != 755 ] || chmod 755 "$fetched/new"
  mv -f "$fetched/new" "$root/$1"
}

write_node_files() {
  write_environment
  put secret 600 "$SECRET"$'\n'
  put config.json 600 "$CONFIG_JSON"$'\n'
}

write_version() { put version.json 644 "$VERSION_JSON"$'\n'; }

write_facts() {
  put platform.json 644 "$PLATFORM_JSON"$'\n'
  put web.json 644 "$WEB_JSON"$'\n'
  put secret-files 644 "$SECRET_FILES"
  put log-units 644 "$LOG_UNITS"
  put log-files 644 "$LOG_FILES"
  put check-node 755 $'#!/bin/bash\n'"$CHECK_TEXT"
}

# Brings everything onto the disk, so that after a power cut what says it is there is true. The sync of CentOS 7 knows no
# files.
keep() { sync -f "$root" /etc /usr /var 2>/dev/null || sync; }

# run PROGRAM ROLE
run() {
  cd "$root/folder" || return
  # shellcheck source=/dev/null
  . "$root/environment"
  "./$1" "$2" </dev/null
}

install() {
  fetch_files
  write_node_files
  unpack
  write_version
  write_facts
  rm -rf "$fetched"
  run install "$role" || exit
  keep
  : >"$root/installed"
}

upgrade() {
  [ -e "$root/installed" ] || fail 'it is not installed on this node'
  export CLUSTER_OLD_VERSION
  fetch_files
  unpack
  rm -f platform.tar.gz
  write_facts
  run upgrade "$role" || exit
  keep
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
