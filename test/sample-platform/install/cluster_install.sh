#!/usr/bin/env bash
# Sets up this machine as a node: bash cluster_install.sh [--no-block] master|agent|public_agent
#
# Downloads everything from the bootstrap server and nothing from elsewhere. Returns when the node's services run or, with --no-block, when they
# are about to start. After a failure or a reboot it starts over. On an installed node it fails.
set -euo pipefail

# Under systemd HOME is not set, and PATH may lack the sbin folders.
export HOME=/root LC_ALL=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1

bootstrap_url='@BOOTSTRAP_URL@'
root=/opt/cluster
target=/etc/systemd/system/cluster.target
custom_ca_key=/var/lib/cluster/pki/tls/CA/private/custom_ca.key
LOCK_SECONDS=300

say() {
  echo "cluster_install: $*"
}

fail() {
  say "$*" >&2
  exit 1
}

parse_arguments() {
  block=yes
  role=
  local argument
  for argument in "$@"; do
    case $argument in
      --no-block) block=no ;;
      master | agent | public_agent)
        [ -z "$role" ] || fail "more than one role was given"
        role=$argument
        ;;
      *) fail "unknown argument $argument; usage: [--no-block] master|agent|public_agent" ;;
    esac
  done
  [ -n "$role" ] || fail "no role was given; usage: [--no-block] master|agent|public_agent"
}

check_machine() {
  [ "$(id -u)" -eq 0 ] || fail "must be run as root"
  [ ! -e "$target" ] || fail "this node is installed already ($target exists)"
  # shellcheck source=/dev/null
  (. /etc/os-release && [ "${ID:-} ${VERSION_ID:-}" = "debian 12" ]) || fail "this release is for Debian 12 only"
  [ -d /run/systemd/system ] || fail "this machine doesn't run systemd"
  local program
  for program in apt-get curl python3 sha256sum tar; do
    command -v "$program" >/dev/null || fail "this machine has no $program"
  done
  exec 9>/run/cluster_install.lock
  flock --nonblock 9 || fail "another cluster_install.sh is at work on this node"
}

# The URL is a secret: it must be in no argument list and no message. Retry, because the server's machine may be restarting.
fetch() {
  curl --fail --silent --show-error --noproxy '*' --connect-timeout 10 --retry 60 --retry-delay 2 --retry-connrefused --max-time 600 \
    --output "$work/$1" --config - <<<"url = \"$bootstrap_url/$1\"" || fail "cannot fetch $1 from the bootstrap server"
  echo "$2  $work/$1" | sha256sum --check --status || fail "$1 is damaged: its sum is wrong"
  mkdir -p "$work/${1%.tar}"
  tar -x -f "$work/$1" -C "$work/${1%.tar}" --no-same-owner --same-permissions
  rm "$work/$1"
}

fetch_all() {
  fetch node.tar '@NODE_SHA256@'
  fetch software.tar '@SOFTWARE_SHA256@'
  if [ "$role" = master ]; then fetch master.tar '@MASTER_SHA256@'; fi
  local wanted
  wanted=$(cat "$work/software/architecture")
  [ "$wanted" = "$(dpkg --print-architecture)" ] || fail "this release is for $wanted machines only"
}

# Determines which node this machine is: the address that the user's script prints is in the list of the role.
identify() {
  address=$("$work/node/ip-detect") || fail "ip-detect failed"
  name=$(awk -v role="$role" -v address="$address" '$1 == role && $2 == address { print $3 }' "$work/node/nodes")
  [ -n "$name" ] || fail "ip-detect says $address, which is not in ${role}_list"
  # shellcheck source=/dev/null
  . "$work/node/settings"
  # shellcheck disable=SC2154 # both are set by the settings
  [ "$fault_role" != "$role" ] || fail "$fault_message"
}

packages() {
  case $name in
    master-0) echo munge slurm-client slurmctld nginx ;;
    master-*) echo munge slurm-client nginx ;;
    *) echo munge slurm-client slurmd ;;
  esac
}

# policy-rc.d prevents the packages' scripts from starting services that aren't configured yet. A file that an interrupted run of this script left is
# not the machine's own.
forbid_starts() {
  policy=/usr/sbin/policy-rc.d
  if [ -e "$policy" ] && ! grep -q cluster_install "$policy"; then mv "$policy" "$work/policy-rc.d"; fi
  printf '#!/bin/sh\n# cluster_install\nexit 101\n' >"$policy"
  chmod 755 "$policy"
}

allow_starts() {
  [ -n "${policy:-}" ] || return 0
  rm -f "$policy"
  if [ -e "$work/policy-rc.d" ]; then mv "$work/policy-rc.d" "$policy"; fi
  policy=
}

clean_up() {
  allow_starts
  rm -rf -- "$work"
}

# apt sees only the packages of the artifact. Packages that the machine has in a newer version stay.
install_packages() {
  local apt=$work/apt wanted status=0
  local options=(-o "Dir::Etc::sourcelist=$apt/sources.list" -o Dir::Etc::sourceparts=/dev/null -o "Dir::State::lists=$apt/lists"
    -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=root -o "DPkg::Lock::Timeout=$LOCK_SECONDS"
    -o Dpkg::Options::=--force-unsafe-io -o Dpkg::Options::=--force-confold -o 'Dpkg::Options::=--path-exclude=/usr/share/man/*')
  read -r -a wanted <<<"$(packages)"
  mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
  echo "deb [trusted=yes] file:$work/software/pool ./" >"$apt/sources.list"
  forbid_starts
  # A reboot may have interrupted an earlier run.
  {
    dpkg --configure --pending --force-confold && apt-get "${options[@]}" update && apt-get "${options[@]}" install --yes --no-install-recommends "${wanted[@]}"
  } >"$work/apt.log" 2>&1 || status=$?
  allow_starts
  [ "$status" -eq 0 ] || fail "the packages (${wanted[*]}) could not be installed:"$'\n'"$(tail -n 20 "$work/apt.log")"
}

install_files() {
  local node=$work/software/node python library
  python=$(python3 -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
  library=$root/active/bootstrap/lib/$python/site-packages
  mkdir -p "$root/bin" "$root/etc" "$root/active/integration-test" "$library" /var/lib/cluster
  cp -R "$node/bin/." "$root/bin"
  cp -R "$node/library/." "$library"
  cp -R "$node/tests/." "$root/active/integration-test"
  cp -R "$work/node/etc/." "$root/etc"
  printf 'name=%s\nrole=%s\naddress=%s\n' "$name" "$role" "$address" >"$root/etc/node"
  cat >"$root/environment.export" <<END
export PATH="$root/bin:/usr/sbin:/usr/bin:/sbin:/bin\${PATH:+:\$PATH}"
export PYTHONPATH="$library"
END
}

configure_slurm() {
  local controller
  controller=$(awk '$1 == "master" { print $3; exit }' "$work/node/nodes")
  if [ "$name" = master-0 ]; then controller=$(hostname --short); fi
  mkdir -p /var/lib/slurm/slurmctld /var/lib/slurm/slurmd
  sed "s/@CONTROLLER@/$controller/" "$work/node/slurm.conf" >/etc/slurm/slurm.conf
  install -o munge -g munge -m 0400 "$work/node/munge.key" /etc/munge/munge.key
}

add_drop_in() {
  install -D -m 0644 "$work/software/node/units/$2" "/etc/systemd/system/$1.d/cluster.conf"
}

install_units() {
  local unit
  for unit in munge slurmctld slurmd nginx; do
    if [ -e "/lib/systemd/system/$unit.service" ]; then add_drop_in "$unit.service" restart.conf; fi
  done
  if [ "$role" = master ]; then install -m 0644 "$work/software/node/units/cluster-web.service" /etc/systemd/system; fi
  if [ "$role" != master ]; then
    printf '\n[Service]\nEnvironment="SLURMD_OPTIONS=-N %s"\n' "$name" >>/etc/systemd/system/slurmd.service.d/cluster.conf
  fi
}

configure_web() {
  local nginx=$work/software/node/nginx web=$root/lib/web
  getent passwd cluster-web >/dev/null ||
    useradd --system --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin cluster-web
  mkdir -p "$web" "$root/etc/nginx"
  cp -R "$work/software/node/web/." "$web"
  install -o cluster-web -g root -m 0600 "$work/master/login.json" "$root/etc/login.json"
  install -m 0644 "$nginx/locations.conf" "$root/etc/nginx"
  rm -f /etc/nginx/sites-enabled/default
  # shellcheck disable=SC2154 # set by the settings
  case $security in
    disabled) cat "$nginx/http.conf" ;;
    permissive) cat "$nginx/http.conf" "$nginx/https.conf" ;;
    strict) cat "$nginx/redirect.conf" "$nginx/https.conf" ;;
  esac >/etc/nginx/conf.d/cluster.conf
}

check_custom_ca() {
  # shellcheck disable=SC2154 # set by the settings
  if [ "$role" != master ] || [ "$custom_ca" != yes ]; then return 0; fi
  [ -f "$custom_ca_key" ] || fail "a custom CA is configured, but its key is missing: $custom_ca_key"
  chown root:root "$custom_ca_key"
  chmod 0600 "$custom_ca_key"
  local certificate_half
  certificate_half=$(openssl x509 -in "$work/master/issuer.crt" -noout -pubkey)
  [ "$(openssl pkey -in "$custom_ca_key" -passin pass: -pubout 2>/dev/null)" = "$certificate_half" ] ||
    fail "$custom_ca_key is not the key of the configured CA certificate"
}

# All addresses of this master that clients use: the private one, the public one if the user's script prints it, and loopback.
alternative_names() {
  local public=
  if [ -f "$work/node/ip-detect-public" ]; then
    public=$("$work/node/ip-detect-public") || fail "ip-detect-public failed"
  fi
  printf 'IP:%s,IP:127.0.0.1,DNS:localhost%s' "$address" "${public:+,IP:$public}"
}

# Signs with the key on this master: that of the generated CA, or the custom one, which was copied here. The server's own key is new.
make_certificate() {
  local names
  names=$(alternative_names)
  printf 'subjectAltName=%s\nbasicConstraints=critical,CA:FALSE\nextendedKeyUsage=serverAuth\n' "$names" >"$work/server.ext"
  openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/O=Sample platform/CN=$name" \
    -keyout "$work/server.key" -out "$work/server.csr"
  openssl x509 -req -sha256 -days 825 -in "$work/server.csr" -CA "$work/master/issuer.crt" -CAkey "$1" -passin pass: \
    -set_serial "0x$(openssl rand -hex 16)" -extfile "$work/server.ext" -out "$work/server.crt"
}

install_certificates() {
  [ -f "$work/master/issuer.crt" ] || return 0
  local tls=/var/lib/cluster/pki/tls key=$custom_ca_key
  install -d -m 0700 "$tls" "$tls/CA" "$tls/CA/private"
  install -m 0600 "$work/master/license" "$root/etc/license"
  install -m 0644 "$work/master/root.crt" "$root/etc/cluster-ca.crt"
  if [ "$custom_ca" != yes ]; then
    key=$tls/CA/private/ca.key
    install -m 0600 "$work/master/ca.key" "$key"
  fi
  make_certificate "$key" 2>"$work/openssl.log"
  cat "$work/server.crt" "$work/master/chain.crt" >"$work/server-and-chain.crt"
  install -m 0644 "$work/server-and-chain.crt" "$tls/server.crt"
  install -m 0600 "$work/server.key" "$tls/server.key"
}

services() {
  case $name in
    master-0) echo munge.service slurmctld.service cluster-web.service nginx.service ;;
    master-*) echo munge.service cluster-web.service nginx.service ;;
    *) echo munge.service slurmd.service ;;
  esac
}

# The target's file appears last, complete and enabled: it marks an installed node, also after a power cut.
start() {
  local wanted
  read -r -a wanted <<<"$(services)"
  echo "${wanted[*]}" >"$root/etc/services"
  printf '[Unit]\nDescription=Cluster platform\nWants=%s\n' "${wanted[*]}" >"$target.new"
  chmod 0644 "$target.new"
  mkdir -p "${target%/*}/multi-user.target.wants"
  ln -sf "$target" "${target%/*}/multi-user.target.wants"
  sync
  mv -f "$target.new" "$target"
  systemctl daemon-reload
  if [ "$block" = no ]; then
    systemctl --no-block start cluster.target
    say "$name is starting"
    return
  fi
  systemctl start cluster.target
  systemctl --quiet is-active "${wanted[@]}" || fail "a service did not start: $(systemctl --failed --plain --no-legend)"
  say "$name runs"
}

main() {
  parse_arguments "$@"
  check_machine
  umask 077
  rm -rf /var/tmp/cluster-install.*
  work=$(mktemp -d /var/tmp/cluster-install.XXXXXX)
  trap clean_up EXIT
  say "fetching from the bootstrap server"
  fetch_all
  identify
  check_custom_ca
  umask 022
  say "installing packages for $name ($address)"
  install_packages
  say "configuring"
  install_files
  configure_slurm
  install_units
  if [ "$role" = master ]; then
    install_certificates
    configure_web
  fi
  start
}

main "$@"
