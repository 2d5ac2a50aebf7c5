import { installPaths } from "../install-paths.ts";

/**
 * Makes a machine fit for the installer. Arguments: `yes` or `no` (whether the platform needs a running Docker and what goes with it), the
 * file that marks an installed platform, then the programs that must be there. Nothing is fetched where nothing is missing, so a node
 * without a way out is prepared too. Run twice it does no harm.
 */
export const prepareScript = `
main() {
  docker=$1
  marker=$2
  shift 2
  check_system
  system=$(system_value ID)
  major=$(system_value VERSION_ID | cut -d . -f 1)
  # shellcheck disable=SC2005,SC2046 # one line, one word a package
  missing=$(echo $(missing_packages "$@"))
  [ -z "$missing" ] || install_packages "$@"
  [ "$docker" = no ] || prepare_for_docker
  mkdir -p ${installPaths.folder}
}

check_system() {
  command -v systemd-run >/dev/null || fail 'the machine does not run systemd'
  version=$(systemctl --version | sed -n '1s/^systemd \\([0-9]*\\).*/\\1/p')
  [ "$version" -ge 200 ] || fail "systemd is too old: $version, and at least 200 is needed"
  [ ! -e "$marker" ] || [ -e ${installPaths.layout} ] || fail "the platform is installed already: $marker exists"
}

missing_packages() {
  for program in "$@"; do
    command -v "$program" >/dev/null || package_of "$program"
  done
  [ "$docker" = no ] || time_is_kept || echo chrony
}

# Programs whose package has another name.
package_of() {
  case $1 in
    ping) if is_apt; then echo iputils-ping; else echo iputils; fi ;;
    xz) if is_apt; then echo xz-utils; else echo xz; fi ;;
    docker) docker_package ;;
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

system_value() { sed -n "s/^$1=\\"\\{0,1\\}\\([^\\"]*\\)\\"\\{0,1\\}$/\\1/p" /etc/os-release; }

install_packages() {
  log=$(mktemp)
  wait_for_first_boot
  now "installing $missing"
  if is_apt; then
    patiently with_apt
  else
    use_vault
    case $missing in *docker*) add_docker_source ;; esac
    patiently with_rpm
  fi
  rm -f "$log"
  for program in "$@"; do
    command -v "$program" >/dev/null || fail "$program is still missing although its package, $(package_of "$program"), was installed"
  done
}

# cloud-init runs the package manager too, and changes its sources before that.
wait_for_first_boot() {
  command -v cloud-init >/dev/null || return 0
  now 'waiting for the end of the first boot'
  timeout 600 cloud-init status --wait >/dev/null 2>&1 || :
}

with_apt() {
  DEBIAN_FRONTEND=noninteractive
  export DEBIAN_FRONTEND
  # shellcheck disable=SC2086 # one word a package
  timeout 300 apt-get -q update && timeout 900 apt-get -q -y --no-install-recommends \\
    -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold install $missing
}

with_rpm() {
  manager=yum
  ! command -v dnf >/dev/null || manager=dnf
  # shellcheck disable=SC2086
  timeout 900 "$manager" -q -y install $missing
}

# CentOS 7 ended in June 2024: its mirrors are gone and its packages are kept in the vault. By http, since the certificates of an old
# image may be too old; the packages are signed.
use_vault() {
  [ "$system$major" = centos7 ] || return 0
  sed -i -e 's|^mirrorlist=.*mirrorlist.centos.org|#&|' \\
    -e 's|^#* *baseurl=http://mirror.centos.org/centos/[$]releasever|baseurl=http://vault.centos.org/7.9.2009|' \\
    /etc/yum.repos.d/CentOS-*.repo
}

# Only Amazon's distributions bring a Docker of their own.
add_docker_source() {
  if [ "$system" = amzn ]; then
    ! command -v amazon-linux-extras >/dev/null || amazon-linux-extras enable docker >/dev/null
    return 0
  fi
  family=centos
  [ "$system" != rhel ] || family=rhel
  curl -fsSL --retry 3 --connect-timeout 20 "https://download.docker.com/linux/$family/docker-ce.repo" \\
    -o /etc/yum.repos.d/docker-ce.repo || fail "Docker's package source could not be read"
  # Where the distribution calls itself 7Server or 8.10, Docker's folder is called 7 or 8 all the same.
  sed -i "s|[$]releasever|$major|g" /etc/yum.repos.d/docker-ce.repo
}

# Again and again while somebody else holds the package manager's lock; a few times after any other failure.
patiently() {
  deadline=$(($(date +%s) + 900))
  tries=1
  until "$@" >"$log" 2>&1; do
    if grep -qiE 'could not get lock|unable to lock|unable to acquire|holding the yum lock' "$log"; then
      now 'waiting for the end of another package installation'
    else
      tries=$((tries + 1))
    fi
    if [ "$tries" -gt 3 ] || [ "$(date +%s)" -gt "$deadline" ]; then
      tail -n 20 "$log" >&2
      fail "installing $missing failed: $(grep . "$log" | tail -n 1)"
    fi
    sleep 3
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
  if ! time_is_kept; then
    unit=chronyd
    ! is_apt || unit=chrony
    systemctl enable "$unit"
    systemctl start "$unit" || fail "$unit, which keeps the time, does not start"
  fi
  docker info >/dev/null 2>&1 || start_docker
}

start_docker() {
  now 'starting Docker'
  systemctl enable docker
  systemctl start docker || fail 'Docker does not start'
  tries=0
  until docker info >/dev/null 2>&1; do
    tries=$((tries + 1))
    [ "$tries" -lt 60 ] || fail "Docker does not answer: $(docker info 2>&1 | tail -n 1)"
    sleep 1
  done
}
`;
