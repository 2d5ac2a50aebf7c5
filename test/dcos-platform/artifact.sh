#!/usr/bin/env bash
# variant: @HEAD_WORD@
#
# A stand-in for a DC/OS @RELEASE@ release, for tests. It doesn't install DC/OS. Usage, as root, in a folder without spaces, with a running Docker:
#   bash ARTIFACT --genconf | --version | --hash-password PASSWORD | --generate-node-upgrade-script INSTALLED_VERSION
# The last line of this script is followed by a tar archive.
set -euo pipefail

artifact=${BASH_SOURCE[0]}
release=@RELEASE@
image=stand-in/dcos-genconf:$release
authority=/run/stand-in-bootstrap-ca.pid

fail() {
  printf '%s\n' "$*" >&2
  exit 1
}

check_surroundings() {
  [ "$(id -u)" -eq 0 ] || fail "$artifact: must be run as root"
  case $PWD in *' '*) fail "$artifact: the path $PWD holds a space" ;; esac
  docker version >/dev/null 2>&1 || fail 'docker should be installed and running'
}

unpack() {
  local first_line
  first_line=$(($(awk '/^#__PAYLOAD__$/ { print NR; exit }' "$artifact") + 1))
  work=$(mktemp -d)
  trap 'rm -rf -- "$work"' EXIT
  tail -n "+$first_line" "$artifact" >"$work/payload.tar"
  echo "@PAYLOAD_SHA256@  $work/payload.tar" | sha256sum --check --status || fail "$artifact: this file is damaged or incomplete"
  tar -x -f "$work/payload.tar" -C "$work"
}

# The first run prints extra lines on stdout, like the real releases.
load_image() {
  if docker image inspect "$image" >/dev/null 2>&1; then return 0; fi
  echo 'Extracting image from this script and loading into docker daemon, this step can take a few minutes'
  echo "dcos-genconf.$release.tar"
  docker load --input "$work/dcos-genconf.$release.tar"
}

# A random salt and the crypt(3) scheme $6$.
hash_password() {
  printf '%s\n' "$1" | openssl passwd -6 -stdin
}

# If genconf has created its files, an enterprise release leaves the authority running on its machine, and ends it before the next genconf.
start_bootstrap_authority() {
  if [ ! -d genconf/ca ]; then return 0; fi
  echo 'Starting the bootstrap CA in the background' >&2
  python3 -m http.server --directory genconf/ca 443 >/dev/null 2>&1 </dev/null &
  echo $! >"$authority"
}

end_bootstrap_authority() {
  if [ -e "$authority" ]; then kill "$(cat "$authority")" 2>/dev/null || :; fi
  rm -f "$authority"
}

# Up to 1.13 this option is accepted, and has no effect here. From 2.0 it is unknown.
if [ "${1:-}" = --offline ] && [ "${release%%.*}" = 1 ]; then shift; fi
case "${1:-}" in
  --version | --genconf | --hash-password | --generate-node-upgrade-script) ;;
  *)
    echo "usage: bash $artifact --genconf | --version | --hash-password PASSWORD | --generate-node-upgrade-script VERSION" >&2
    exit 2
    ;;
esac
check_surroundings
unpack
load_image
case $1 in
  --version) printf '{\n  "variant": "%s",\n  "version": "%s"\n}\n' '@VARIANT@' "$release" ;;
  --genconf)
    end_bootstrap_authority
    echo '====> EXECUTING CONFIGURATION GENERATION' >&2
    PYTHONDONTWRITEBYTECODE=1 python3 "$work/genconf.py" '@VARIANT@' "$release" "$work"
    start_bootstrap_authority
    ;;
  --generate-node-upgrade-script)
    [ -n "${2:-}" ] || {
      echo 'Must provide the version of the cluster upgrading from'
      exit 1
    }
    end_bootstrap_authority
    PYTHONDONTWRITEBYTECODE=1 python3 "$work/genconf.py" '@VARIANT@' "$release" "$work" "$2"
    start_bootstrap_authority
    ;;
  --hash-password)
    [ $# -eq 2 ] || fail '--hash-password needs one PASSWORD'
    echo '====> HASHING PASSWORD TO SHA512' >&2
    hash_password "$2"
    ;;
esac
exit
#__PAYLOAD__
