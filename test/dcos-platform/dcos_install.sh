#!/bin/bash
# A stand-in for the install script of a DC/OS release: bash dcos_install.sh [--no-block-dcos-setup] master|slave|slave_public
#
# Checks the machine, then starts the units dcos-download and dcos-setup for the rest. With the flag it doesn't wait for them.
set -euo pipefail

bootstrap_url='@BOOTSTRAP_URL@'
bootstrap_id=@BOOTSTRAP_ID@
fault_role='@FAULT_ROLE@'
fault_at='@FAULT_AT@'
docker_version=@DOCKER_VERSION@
programs='@PROGRAMS@'
needs_nogroup=@NOGROUP@
master_ports='@MASTER_PORTS@'
agent_ports='@AGENT_PORTS@'
port_format=@PORT_FORMAT@
has_failed=no

# Prints one line for each check, and runs all of them, like the real script.
check() {
  local what=$1
  shift
  if "$@" >/dev/null 2>&1; then
    echo "Checking $what: PASS"
  else
    echo "Checking $what: FAIL"
    has_failed=yes
  fi
}

is_absent() { ! "$@"; }
has_systemd() { [ "$(systemctl --version | sed -n '1s/^systemd \([0-9]*\).*/\1/p')" -ge 200 ]; }

# Any socket counts, whatever its address and state. The kernel prints upper-case hex digits, so a lower-case format misses ports with letters.
is_free() {
  local number
  # shellcheck disable=SC2059 # the format comes from the release
  number=$(printf "$port_format" "$1")
  ! cat /proc/net/udp* /proc/net/tcp* | cut -d: -f3 | cut -d' ' -f1 | grep -q "$number"
}

# If Docker's components are listed too, the last `Version:` line belongs to one of them.
has_docker() {
  local found
  if [ "$docker_version" = format ]; then
    found=$(docker version --format '{{.Server.Version}}')
  else
    found=$(docker version 2>/dev/null | sed -n 's/^ *Version: *//p' | tail -n 1)
  fi
  echo "$found"
  [ "$(printf '%s\n' 1.6 "$found" | sort -V | head -n 1)" = 1.6 ]
}

parse_arguments() {
  block=yes
  roles=()
  local argument
  for argument in "$@"; do
    case $argument in
      --no-block-dcos-setup) block=no ;;
      master | slave | slave_public) roles+=("$argument") ;;
      *)
        echo "ERROR: unknown flag or role: $argument" >&2
        exit 1
        ;;
    esac
  done
  if [ "${#roles[@]}" -ne 1 ]; then
    echo 'ERROR: one role is needed: master, slave or slave_public' >&2
    exit 1
  fi
  role=${roles[0]}
}

check_machine() {
  if [ "$(id -u)" -ne 0 ]; then
    echo 'ERROR: must be run as root' >&2
    exit 1
  fi
  if [ -e /etc/systemd/system/dcos.target ] || [ -e /opt/mesosphere ]; then
    echo 'Found an existing DC/OS installation. To reinstall DC/OS on this machine you must first uninstall it.' >&2
    exit 1
  fi
  local program port ports=$agent_ports
  for program in docker $programs; do
    check "if $program is installed and in PATH" command -v "$program"
  done
  check 'if docker answers' docker info
  check 'docker version requirement (>= 1.6)' has_docker
  check 'systemd version' has_systemd
  if [ "$needs_nogroup" = yes ]; then check 'if group nogroup exists' getent group nogroup; fi
  check 'if firewalld is not running' is_absent systemctl is-active --quiet firewalld
  if [ "$role" = master ]; then ports=$master_ports; fi
  for port in $ports; do check "if port $port is free" is_free "$port"; done
  if [ "$role" = "$fault_role" ] && [ "$fault_at" = install ]; then check 'if the fault that was asked for is away' false; fi
  if [ "$has_failed" = yes ]; then
    echo 'This machine is not ready for DC/OS: see the checks that FAIL above.' >&2
    exit 1
  fi
}

write_units() {
  local archive=$bootstrap_id.bootstrap.tar.xz
  if [ "$role" = "$fault_role" ] && [ "$fault_at" = download ]; then archive=no-such-archive.tar.xz; fi
  mkdir -p /etc/mesosphere/roles /etc/mesosphere/setup-flags
  : >"/etc/mesosphere/roles/$role"
  # The URL is a secret. It must be neither in a unit, which everyone can read, nor in an argument list.
  (umask 077 && echo "url = \"$bootstrap_url/bootstrap/$archive\"" >/etc/mesosphere/setup-flags/download)
  cat >/etc/systemd/system/dcos-download.service <<UNIT
[Unit]
Description=Pkgpanda: Download DC/OS to this host.
ConditionPathExists=!/opt/mesosphere/

[Service]
Type=oneshot
UMask=0077
PrivateTmp=yes
ExecStart=/usr/bin/curl --noproxy * -fLsS --retry 60 --retry-delay 2 --retry-connrefused -o /var/tmp/bootstrap.tar.xz --config /etc/mesosphere/setup-flags/download
ExecStart=/bin/rm -rf /opt/mesosphere.new
ExecStart=/bin/mkdir -p /opt/mesosphere.new
ExecStart=/bin/tar -x -J -f /var/tmp/bootstrap.tar.xz --no-same-owner --same-permissions -C /opt/mesosphere.new
ExecStart=/bin/mv -T /opt/mesosphere.new /opt/mesosphere
ExecStart=/bin/rm -f /etc/mesosphere/setup-flags/download
UNIT
  # The unit starts again at boot, so that a reboot doesn't stop the installation.
  cat >/etc/systemd/system/dcos-setup.service <<UNIT
[Unit]
Description=Pkgpanda: Specialize DC/OS for this host.
Requires=dcos-download.service
After=dcos-download.service
ConditionPathExists=!/etc/systemd/system/dcos.target

[Service]
Type=oneshot
ExecStart=/bin/bash /opt/mesosphere/setup $role

[Install]
WantedBy=multi-user.target
UNIT
}

parse_arguments "$@"
check_machine
write_units
systemctl daemon-reload
systemctl --quiet enable dcos-setup
if [ "$block" = no ]; then
  systemctl --no-block start dcos-setup
else
  systemctl start dcos-setup
fi
