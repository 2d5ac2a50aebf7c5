#!/bin/sh
# shellcheck disable=SC2154 # see below
# Functions that find and install the packages of missing programs with the distribution's own package manager. They
# run as root behind script-start.sh. They share the variables $system and $major (set by read_system), $missing (set
# by install_missing), and $conditions, the caller's comma-separated list of what the layout requires, such as docker.
# Values: APT_PACKAGES and RPM_PACKAGES, what the platform needs besides programs.

wants() {
  case ",$conditions," in *",$1,"*) ;; *) return 1 ;; esac
}

read_system() {
  system=$(system_value ID)
  major=$(system_value VERSION_ID | cut -d . -f 1)
}

install_missing() {
  # shellcheck disable=SC2005,SC2046 # one line, one word per package
  missing=$(echo $(missing_packages "$@"))
  [ -n "$missing" ] || return 0
  install_packages
  for program in "$@"; do
    command -v "$program" >/dev/null || fail "$program is still missing although its package, $(package_of "$program"), was installed"
  done
}

missing_packages() {
  for program in "$@"; do
    command -v "$program" >/dev/null || package_of "$program"
  done
  for package in $(platform_packages); do
    is_installed "$package" || echo "$package"
  done
  ! needs_time_service || time_is_kept || echo chrony
}

platform_packages() { if is_apt; then echo "$APT_PACKAGES"; else echo "$RPM_PACKAGES"; fi; }

is_installed() {
  if is_apt; then
    dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q '^install ok installed'
  else
    rpm -q --whatprovides "$1" >/dev/null 2>&1
  fi
}

needs_time_service() { wants docker || wants clock-synchronized; }

# Programs whose package has another name.
package_of() {
  case $1 in
    ping) if is_apt; then echo iputils-ping; else echo iputils; fi ;;
    xz) if is_apt; then echo xz-utils; else echo xz; fi ;;
    docker) docker_package ;;
    ifconfig) echo net-tools ;;
    dig) if is_apt; then echo bind9-dnsutils; else echo bind-utils; fi ;;
    *) echo "$1" ;;
  esac
}

docker_package() {
  case $system in
    amzn) echo docker ;;
    *) if is_apt; then echo docker.io; else echo docker-ce; fi ;;
  esac
}

in_container() { systemd-detect-virt --container --quiet; }

# A container's clock is the host's.
time_is_kept() {
  ! in_container || return 0
  for unit in chronyd chrony ntpd ntp ntpsec systemd-timesyncd; do
    ! systemctl is-active --quiet "$unit" || return 0
  done
  return 1
}

is_apt() { command -v apt-get >/dev/null; }

system_value() { sed -n "s/^$1=\"\{0,1\}\([^\"]*\)\"\{0,1\}$/\1/p" /etc/os-release; }

install_packages() {
  log=$(mktemp)
  wait_for_first_boot
  now "installing $missing"
  if is_apt; then
    with_retries with_apt
  else
    use_vault
    case $missing in *docker*) add_docker_source ;; esac
    with_retries with_rpm
  fi
  rm -f "$log"
}

# cloud-init runs the package manager too, and changes its sources before that.
wait_for_first_boot() {
  { [ -d /run/systemd/system ] && command -v cloud-init >/dev/null; } || return 0
  now 'waiting for the first boot to finish'
  timeout 600 cloud-init status --wait >/dev/null 2>&1 || :
}

with_apt() {
  DEBIAN_FRONTEND=noninteractive
  export DEBIAN_FRONTEND
  timeout 300 apt-get -q update || return 1
  # In Debian 13 the client is a separate package, which docker.io only recommends.
  client=
  case " $missing " in
    *' docker.io '*) ! apt-cache show docker-cli >/dev/null 2>&1 || client=docker-cli ;;
  esac
  # shellcheck disable=SC2086 # one word per package
  timeout 900 apt-get -q -y --no-install-recommends \
    -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold install $missing $client
}

with_rpm() {
  manager=yum
  ! command -v dnf >/dev/null || manager=dnf
  # Unlike dnf, yum installs the other packages, and succeeds, if one of several names is unknown.
  set --
  [ "$manager" = dnf ] || set -- --setopt=skip_missing_names_on_install=0
  # On RHEL 7, Docker's dependencies are in a repository that is disabled by default.
  [ "$system$major" != rhel7 ] || set -- "$@" '--enablerepo=*extras*'
  # shellcheck disable=SC2086
  timeout 900 "$manager" -q -y "$@" install $missing
}

# CentOS 7 reached its end of life in June 2024: its mirrors are gone, and its packages are in the vault. This uses http because an old image may
# lack current certificates; the packages are signed.
use_vault() {
  [ "$system$major" = centos7 ] || return 0
  sed -i -e 's|^mirrorlist=.*mirrorlist.centos.org|#&|' \
    -e 's|^#* *baseurl=http://mirror.centos.org/centos/[$]releasever|baseurl=http://vault.centos.org/7.9.2009|' \
    /etc/yum.repos.d/CentOS-*.repo
}

# Among the distributions with yum or dnf, only Amazon's have a Docker package of their own.
add_docker_source() {
  if [ "$system" = amzn ]; then
    ! command -v amazon-linux-extras >/dev/null || amazon-linux-extras enable docker >/dev/null
    return 0
  fi
  family=centos
  # Docker's folder for RHEL 7 has packages for s390x only; the packages for CentOS 7 work on RHEL 7 too.
  [ "$system" != rhel ] || [ "$major" = 7 ] || family=rhel
  curl -fsSL --retry 3 --connect-timeout 20 "https://download.docker.com/linux/$family/docker-ce.repo" \
    -o /etc/yum.repos.d/docker-ce.repo || fail "cannot read Docker's package source"
  # A distribution may call itself 7Server or 8.10, but Docker's folders are called 7 and 8.
  sed -i "s|[$]releasever|$major|g" /etc/yum.repos.d/docker-ce.repo
}

# Retries for up to 15 minutes while another process holds the package manager's lock. After any other failure, makes three attempts.
with_retries() {
  deadline=$(($(uptime_now) + 900))
  tries=1
  until "$@" >"$log" 2>&1; do
    if grep -qiE 'could not get lock|unable to lock|unable to acquire|holding the yum lock' "$log"; then
      now 'waiting for another package installation to finish'
    else
      tries=$((tries + 1))
    fi
    if [ "$tries" -gt 3 ] || [ "$(uptime_now)" -gt "$deadline" ]; then
      tail -n 20 "$log" >&2
      # apt-get update succeeds without any mirror, and apt-get install then knows no package.
      cause=$(grep -m 1 '^W: Failed to fetch' "$log" || :)
      fail "installing $missing failed: $(grep . "$log" | tail -n 1)${cause:+ ($cause)}"
    fi
    sleep 3
  done
}
