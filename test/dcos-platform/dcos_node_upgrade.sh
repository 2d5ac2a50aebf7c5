#!/bin/bash
# A stand-in for the script of a DC/OS release that upgrades one node, as root: bash dcos_node_upgrade.sh [--skip-checks] [--verbose]
#
# It fails where the real one would: on a node without DC/OS or with another version than the one that it was generated for, and if a check fails
# before, or still after 300 seconds. Instead of packages, it fetches the archive that a new node would get.
set -o errexit -o pipefail -o nounset

bootstrap_url='@BOOTSTRAP_URL@'
bootstrap_id=@BOOTSTRAP_ID@
installed='@INSTALLED@'
release='@RELEASE@'
flags='@FLAGS@'
is_checked=@IS_CHECKED@

# shellcheck source=/dev/null
source /opt/mesosphere/environment.export

for flag in "$@"; do
  case " $flags " in
    *" $flag "*) ;;
    *)
      echo "Error: Unsupported flag $flag" >&2
      exit 1
      ;;
  esac
  if [ "$flag" = --skip-checks ]; then is_checked=no; fi
done
if [ "$EUID" -ne 0 ]; then
  echo 'This script must be run as root' >&2
  exit 1
fi
found=$(grep version /opt/mesosphere/etc/dcos-version.json | cut -d '"' -f 4)
if [ "$found" != "$installed" ]; then
  echo "ERROR: Expecting to upgrade DC/OS from $installed to $release. Version found on node: $found"
  exit 1
fi

# The check of the release that is installed at that moment; 3dt is not asked.
run_checks() {
  local program
  for program in dcos-check-runner dcos-diagnostics; do
    [ -x "/opt/mesosphere/bin/$program" ] || continue
    dcos-shell "/opt/mesosphere/bin/$program" check node-poststart
    return
  done
}

if [ "$is_checked" = yes ] && ! output=$(run_checks 2>&1); then
  echo 'Cannot proceed with upgrade, node-poststart checks failed'
  echo "$output" >&2
  exit 1
fi
roles=(/etc/mesosphere/roles/*)
role=${roles[0]##*/}
if [ "${#roles[@]}" -ne 1 ] || [ ! -f "${roles[0]}" ]; then
  echo "ERROR: Can't determine this node's role."
  exit 1
fi

echo "Upgrading DC/OS $role $installed -> $release"
new=/opt/mesosphere.new
rm -rf "$new"
mkdir "$new"
curl --noproxy '*' -fLsS --config - <<END | tar -x -J --no-same-owner --same-permissions -C "$new"
url = "$bootstrap_url/bootstrap/$bootstrap_id.bootstrap.tar.xz"
END
# The cluster keeps its certificate authority.
for file in ca.crt ca.key; do
  if [ -e "/opt/mesosphere/etc/$file" ]; then cp -p "/opt/mesosphere/etc/$file" "$new/etc/$file"; fi
done
systemctl stop dcos-stand-in
rm -rf /opt/mesosphere.old
mv /opt/mesosphere /opt/mesosphere.old
mv "$new" /opt/mesosphere
bash /opt/mesosphere/setup "$role"
rm -rf /opt/mesosphere.old
systemctl restart dcos-stand-in

tries=300
until [ "$is_checked" = no ] || output=$(run_checks 2>&1); do
  tries=$((tries - 1))
  if [ "$tries" -eq 0 ]; then
    echo 'Node upgrade not successful, checks failed'
    echo "$output" >&2
    exit 1
  fi
  sleep 1
done
