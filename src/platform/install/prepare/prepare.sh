#!/bin/sh
# shellcheck disable=SC2034 # $conditions: see package-functions.sh
# Prepares a machine for the installer. It downloads nothing if nothing is missing, so it also works on a node without
# internet access. It can safely run twice. Runs as root, behind script-start.sh and with package-functions.sh,
# unit-functions.sh; a layout may replace set_up_container. Prints lines "now: …".
# Arguments: the layout's conditions, joined by commas; the file that marks an installed platform; the distributions
# that would fit if the machine's control groups don't, as text; then the required programs.
# Values: FOLDER, which it creates for the installation; LAYOUT_FILE, which marks an installation of ours;
# KERNEL_MODULES, which the platform needs, and MODULES_FILE, which names them for the next boot.

main() {
  conditions=$1
  marker=$2
  fitting=$3
  shift 3
  check_system
  ! wants cgroups-1 || check_cgroups
  read_system
  load_modules
  install_missing "$@"
  ! needs_time_service || start_time_service
  ! wants dns-port-free || free_dns_port
  ! wants docker || prepare_for_docker
  ! in_container || set_up_container
  ! wants docker || start_docker
  ! wants clock-synchronized || wait_for_clock
  mkdir -p "$FOLDER"
}

check_system() {
  command -v systemd-run >/dev/null || fail 'the machine does not run systemd'
  version=$(systemctl --version | sed -n '1s/^systemd \([0-9]*\).*/\1/p')
  [ "$version" -ge 200 ] || fail "systemd is too old: it is version $version, but at least 200 is required"
  [ ! -e "$marker" ] || [ -e "$LAYOUT_FILE" ] || fail "the platform is already installed: $marker exists"
}

check_cgroups() {
  [ "$(stat -f -c %T /sys/fs/cgroup)" = cgroup2fs ] || return 0
  fail "the machine has cgroups 2, but the platform requires cgroups 1. $fitting"
}

# systemd-resolved's stub is the usual owner of port 53: it goes, and the servers that it asks are asked directly.
free_dns_port() {
  dns_port_is_taken || return 0
  ! systemctl is-active --quiet systemd-resolved || turn_stub_off
  tries=0
  while dns_port_is_taken; do
    tries=$((tries + 1))
    [ "$tries" -lt 20 ] || fail "the platform needs port 53, but $(dns_port_owner) uses it"
    sleep 0.5
  done
}

# Any socket of this port counts, as it does for the platform's own installer.
dns_port_is_taken() { cat /proc/net/udp* /proc/net/tcp* | cut -d : -f 3 | cut -d ' ' -f 1 | grep -q '^0035$'; }

dns_port_owner() {
  owner=$(ss -a -n -p -t -u 'sport = :53' 2>/dev/null | sed -n 's/.*users:(("\([^"]*\)".*/\1/p' | head -n 1)
  echo "${owner:-another program}"
}

turn_stub_off() {
  upstream=/run/systemd/resolve/resolv.conf
  now 'turning off the DNS stub of systemd-resolved'
  mkdir -p /etc/systemd/resolved.conf.d
  printf '[Resolve]\nDNSStubListener=no\n' >/etc/systemd/resolved.conf.d/cluster-e2e.conf
  chmod 755 /etc/systemd/resolved.conf.d
  chmod 644 /etc/systemd/resolved.conf.d/cluster-e2e.conf
  systemctl restart systemd-resolved
  tries=0
  until grep -qs '^nameserver' "$upstream"; do
    tries=$((tries + 1))
    [ "$tries" -lt 20 ] || fail 'systemd-resolved has no name server to use instead'
    sleep 0.5
  done
  grep -q '^nameserver 127[.]0[.]0[.]5[34]' /etc/resolv.conf || return 0
  ln -sf "$upstream" /etc/resolv.conf 2>/dev/null || cat "$upstream" >/etc/resolv.conf
}

# A container uses its host's kernel, and may not change it.
load_modules() {
  [ -n "$KERNEL_MODULES" ] || return 0
  for module in $KERNEL_MODULES; do
    if in_container; then
      is_loaded "$module" || fail "the platform needs the kernel module $module, which the computer that runs this container has not loaded. Run there: sudo modprobe $module"
    else
      modprobe "$module" || fail "the platform needs the kernel module $module, which cannot be loaded"
    fi
  done
  # shellcheck disable=SC2086 # one word each
  in_container || printf '%s\n' $KERNEL_MODULES >"$MODULES_FILE"
}

# Either as a module, or built into the kernel.
is_loaded() {
  [ ! -d "/sys/module/$(echo "$1" | tr - _)" ] || return 0
  grep -qs "/$1[.]ko" "/lib/modules/$(uname -r)/modules.builtin"
}

start_time_service() {
  ! time_is_kept || return 0
  unit=chronyd
  ! is_apt || unit=chrony
  systemctl enable "$unit"
  systemctl start "$unit" || fail "$unit, which keeps the time, does not start"
}

# A service that keeps the time needs some seconds for it.
wait_for_clock() {
  ! in_container || return 0
  now 'waiting for the clock to be synchronized'
  tries=0
  until timedatectl 2>/dev/null | grep -q 'synchronized: yes'; do
    tries=$((tries + 1))
    [ "$tries" -lt 180 ] || fail "the clock was not synchronized within 3 minutes: the machine cannot reach a time server"
    sleep 1
  done
}

prepare_for_docker() {
  getent group nogroup >/dev/null || groupadd --system nogroup
  if systemctl is-active --quiet firewalld; then
    systemctl stop firewalld
    systemctl disable firewalld
  fi
  # In a container the swap is the host's.
  if ! in_container && [ "$(wc -l </proc/swaps)" -gt 1 ]; then
    swapoff -a
    sed -i 's|^[^#].*[[:space:]]swap[[:space:]].*|#&|' /etc/fstab
  fi
}

# Also while it is starting; otherwise, the next start sees the change.
restart_docker() {
  reload_unless_read docker
  case $(systemctl is-active docker) in
    inactive | failed | unknown) ;;
    *) systemctl restart docker ;;
  esac
}

start_docker() {
  ! docker info >/dev/null 2>&1 || return 0
  now 'starting Docker'
  # On Debian, enable would run slow scripts of the old init system first.
  systemctl --no-reload add-wants multi-user.target docker.service
  systemctl start docker || fail 'Docker does not start'
  tries=0
  until docker info >/dev/null 2>&1; do
    tries=$((tries + 1))
    [ "$tries" -lt 60 ] || fail "Docker does not answer: $(docker info 2>&1 | tail -n 1)"
    sleep 1
  done
}

set_up_container() { :; }
