#!/usr/bin/env bash
# variant: @VARIANT@
#
# Generates installers of the sample platform @VERSION@ (Slurm from Debian 12).
# Usage, as root, in a folder with genconf/config.yaml and genconf/ip-detect:
#   bash ARTIFACT --genconf | --version | --hash-password PASSWORD
# The last line of this script is followed by a tar archive of Debian packages and the programs that install them.
set -euo pipefail

artifact=${BASH_SOURCE[0]}

fail() {
  printf '%s\n' "$*" >&2
  exit 1
}

# An incomplete download still runs as a script. Only the checksum detects it.
unpack_software() {
  local first_line
  first_line=$(($(awk '/^#__SOFTWARE__$/ { print NR; exit }' "$artifact") + 1))
  tail -n "+$first_line" "$artifact" >"$work/software.tar"
  echo "@SOFTWARE_SHA256@  $work/software.tar" | sha256sum --check --status ||
    fail "artifact: this file is damaged or incomplete; download it again"
  tar -x -f "$work/software.tar" -C "$work" genconf install generator-packages
}

# PyYAML is installed with cloud-init. Other machines use our copy, unpacked for this run only.
find_yaml() {
  python3 -c 'import yaml' 2>/dev/null && return
  dpkg-deb --extract "$work"/generator-packages/python3-yaml_*.deb "$work/yaml"
  export PYTHONPATH=$work/yaml/usr/lib/python3/dist-packages
}

generate() {
  local program
  for program in curl dpkg-deb openssl python3 tar; do
    command -v "$program" >/dev/null || fail "artifact: this machine has no $program"
  done
  work=$(mktemp -d)
  trap 'rm -rf -- "$work"' EXIT
  unpack_software
  find_yaml
  PYTHONDONTWRITEBYTECODE=1 python3 "$work/genconf" @VARIANT@ @VERSION@ "$work"
}

# A random salt and the crypt(3) scheme $6$. Debian 12's Python still has the module.
hash_password() {
  PASSWORD=$1 python3 -W ignore -c 'import crypt, os; print(crypt.crypt(os.environ["PASSWORD"], crypt.METHOD_SHA512))'
}

case "${1:-}" in
  --version) printf '{"variant": "%s", "version": "%s"}\n' '@VARIANT@' '@VERSION@' ;;
  --genconf) generate ;;
  --hash-password)
    [ $# -eq 2 ] || fail "--hash-password needs one PASSWORD"
    hash_password "$2"
    ;;
  *)
    echo "usage: bash $artifact --genconf | --version | --hash-password PASSWORD" >&2
    exit 2
    ;;
esac
exit
#__SOFTWARE__
