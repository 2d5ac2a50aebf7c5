#!/bin/sh
# Installs, upgrades or removes the programs of cluster-e2e, with their manual pages and completions. Nothing is placed that
# was not verified, and nothing stays half installed.
set -eu

# The release writes what it is between these quotes.
release=''
download_root=''
signer=''

usage() {
  cat <<'USAGE'
Usage: install.sh [OPTIONS]

  --prefix DIR          install below DIR instead of /usr/local: programs in DIR/bin, the rest in DIR/share
  --version TAG         install the release TAG instead of this script's own
  --from URL-OR-FOLDER  take the release's files from there
  --require-signature   refuse where the signature cannot be verified, too
  --uninstall           remove what this script installed below the prefix
  --help                print this
USAGE
}

say() { printf '%s\n' "install.sh: $*" >&2; }

refuse() {
  say "$*"
  exit 1
}

wrong_usage() {
  say "$*"
  usage >&2
  exit 2
}

parse() {
  prefix=/usr/local from='' action=install signature=wanted
  while [ $# -gt 0 ]; do
    case $1 in
      --prefix | --version | --from) [ -n "${2:-}" ] || wrong_usage "$1 needs a value" ;;
    esac
    case $1 in
      --prefix) prefix=$2 && shift ;;
      --version) release=$2 && shift ;;
      --from) from=${2%/} && shift ;;
      --require-signature) signature=required ;;
      --uninstall) action=uninstall ;;
      --help | -h) usage && exit 0 ;;
      *) wrong_usage "no such option: $1" ;;
    esac
    shift
  done
  case $prefix in /*) ;; *) prefix=$PWD/$prefix ;; esac
  prefix=${prefix%/}
  [ -n "$prefix" ] || wrong_usage "programs do not belong right below /: give another --prefix"
  manifest=$prefix/share/cluster-e2e/installed
  staging=$prefix/.cluster-e2e-installing
}

pick_source() {
  [ -n "$release" ] || wrong_usage "which release? Give --version"
  case $release in *[!0-9.]*) wrong_usage "$release is no release, such as 2026.01.31.0" ;; esac
  [ -n "$from" ] || [ -n "$download_root" ] || wrong_usage "where are its files? Give --from"
  source=${from:-${download_root%/}/$release}
}

pick_platform() {
  system=$(uname -s) machine=$(uname -m)
  case $system in
    Linux) system=linux ;;
    Darwin) system=darwin ;;
    *) refuse "there is nothing for $system: Linux and macOS only" ;;
  esac
  case $machine in
    x86_64 | amd64) machine=x64 ;;
    aarch64 | arm64) machine=arm64 ;;
    *) refuse "there is nothing for $machine processors: x86-64 and ARM (64 bit) only" ;;
  esac
  # A shell that Rosetta translates takes the machine for an Intel one.
  if [ "$system" = darwin ] && [ "$(sysctl -n sysctl.proc_translated 2>/dev/null || :)" = 1 ]; then machine=arm64; fi
  platform=$system-$machine
  [ "$system" = darwin ] || has_c_library ||
    refuse "the programs need the GNU C library (2.17 or later), which this system lacks"
}

has_c_library() {
  for loader in /lib/ld-linux-* /lib64/ld-linux-*; do [ ! -e "$loader" ] || return 0; done
  return 1
}

fetch() { # NAME
  case $source in
    http://* | https://*)
      if command -v curl >/dev/null; then
        # One that stalls is given up after a minute; from https none leads to http.
        curl --fail --silent --show-error --location --proto-redir "=${source%%:*},https" --retry 2 --connect-timeout 30 \
          --speed-limit 1000 --speed-time 60 --output "$work/$1" "$source/$1"
      elif command -v wget >/dev/null; then
        wget -q -O "$work/$1" "$source/$1"
      else
        refuse "neither curl nor wget is here to download with"
      fi
      ;;
    *) cp "$source/$1" "$work/$1" ;;
  esac || refuse "could not get $source/$1"
}

pick_summer() {
  if command -v sha256sum >/dev/null; then
    summer=sha256sum
  elif command -v shasum >/dev/null; then
    summer='shasum -a 256'
  elif command -v openssl >/dev/null; then
    summer='openssl dgst -sha256 -r'
  else
    refuse "neither sha256sum, shasum nor openssl is here to verify with"
  fi
}

# Prints the SHA-256 of a file in hexadecimal digits.
sum_of() { # FILE
  # shellcheck disable=SC2086 # a command and its options
  $summer "$1" | sed 's/[^0-9a-f].*//'
}

fetch_verified() { # NAME
  expected=$(sed -n "s/^\([0-9a-f]\{64\}\)  $1\$/\1/p" "$work/SHA256SUMS")
  [ "${#expected}" = 64 ] || refuse "the release has no $1, or not once"
  fetch "$1"
  [ "$(sum_of "$work/$1")" = "$expected" ] || refuse "$1 is not what was released: its checksum is another"
}

can_verify_signatures() {
  command -v ssh-keygen >/dev/null && ! ssh-keygen -Y verify 2>&1 </dev/null | grep -qE 'unknown|illegal'
}

verify_signature() {
  if [ -z "$signer" ]; then
    unverified "this release is not signed"
  elif can_verify_signatures; then
    fetch SHA256SUMS.sig
    printf 'cluster-e2e namespaces="cluster-e2e-release" %s\n' "$signer" >"$work/allowed_signers"
    ssh-keygen -Y verify -f "$work/allowed_signers" -I cluster-e2e -n cluster-e2e-release -s "$work/SHA256SUMS.sig" \
      <"$work/SHA256SUMS" >/dev/null 2>&1 || refuse "the signature of SHA256SUMS is not right"
  else
    unverified "the signature is not verified, since there is no ssh-keygen (8.2 or later) here"
  fi
}

unverified() { # REASON
  [ "$signature" != required ] || refuse "$1"
  case $source in
    http://127.* | http://localhost[:/]*) ;;
    http://*) refuse "$1, and anybody between here and there can change what comes over http: give an https address" ;;
  esac
  say "$1; the checksums are"
}

see_platform() {
  ! grep -q -- "-$platform\(\.tar\.xz\)\{0,1\}\$" "$work/SHA256SUMS" || return 0
  there=$(sed -n 's/.*-\([a-z]*-[a-z0-9]*\)\.tar\.xz$/\1/p' "$work/SHA256SUMS" | tr '\n' ' ')
  refuse "release $release has nothing for $platform, only for: ${there% }"
}

# Fills $staging/new with bin and share.
fetch_tree() {
  if command -v xz >/dev/null || [ "$system" = darwin ]; then fetch_archive; else fetch_one_by_one; fi
}

fetch_archive() {
  archive=cluster-e2e-$release-$platform
  fetch_verified "$archive.tar.xz"
  unpack "$work/$archive.tar.xz" ||
    refuse "$archive.tar.xz could not be unpacked; that takes 300 MB of memory, and 400 MB of space in $prefix"
  mv "$staging/unpacked/$archive" "$staging/new" 2>/dev/null || refuse "$archive.tar.xz does not hold what it should"
}

# Not every tar knows xz; that of a Mac does, where there is no xz.
unpack() { # ARCHIVE
  mkdir "$staging/unpacked"
  if command -v xz >/dev/null; then
    xz -dc "$1" | tar -xof - -C "$staging/unpacked"
  else
    tar -xJof "$1" -C "$staging/unpacked"
  fi
}

fetch_one_by_one() {
  mkdir -p "$staging/new/bin"
  fetch_verified "cluster-e2e-$release-share.tar.gz"
  tar -xzof "$work/cluster-e2e-$release-share.tar.gz" -C "$staging/new" || refuse "the manual pages could not be unpacked"
  sed -n "s/^[0-9a-f]*  \(cluster-[a-z]*-$platform\)\$/\1/p" "$work/SHA256SUMS" >"$work/programs"
  [ -s "$work/programs" ] || refuse "the release has no programs for $platform"
  while IFS= read -r file; do
    fetch_verified "$file"
    chmod 755 "$work/$file"
    mv "$work/$file" "$staging/new/bin/${file%-"$platform"}" || refuse "there is no room for $file in $prefix"
  done <"$work/programs"
}

# Makes a folder with its parents, and notes which were not there.
make_folder() { # FOLDER
  [ ! -d "$1" ] || return 0
  make_folder "$(dirname "$1")"
  printf '%s\n' "$1" >>"$work/folders"
  mkdir "$1" 2>/dev/null || cannot_write "$(dirname "$1")"
}

remove_folders() { # LIST, outermost first
  sed '1!G;h;$!d' "$1" | while IFS= read -r folder; do rmdir "$folder" 2>/dev/null || :; done
}

cannot_write() { # FOLDER
  refuse "$1 cannot be written to. Run this with sudo, or give --prefix \"\$HOME/.local\""
}

# Makes the folder, on the prefix's own file system, from which all is put into place; whoever has it is the only one at work.
open_staging() {
  : >"$work/folders"
  make_folder "$prefix"
  for folder in "$prefix" "$prefix/bin" "$prefix/share"; do [ ! -d "$folder" ] || [ -w "$folder" ] || cannot_write "$folder"; done
  if ! mkdir "$staging" 2>/dev/null; then
    [ -d "$staging" ] || cannot_write "$prefix"
    refuse "something is being installed or removed there already. If that is not so, one was cut short: put back what lies in $staging/old, if anything does, then remove $staging and try again"
  fi
  is_ours=yes
  mkdir "$staging/old"
}

# Every program has to start where it will lie, as the release that it should be.
try_programs() {
  for program in "$staging"/new/bin/*; do
    said=$("$program" --version 2>&1) || refuse "${program##*/} does not start on this machine: $said"
    [ "$said" = "$release" ] || refuse "${program##*/} is of release $said, not $release"
  done
}

# Puts aside what stands there, if anything, until all is placed.
retire() { # PATH below the prefix
  [ -e "$prefix/$1" ] || [ -L "$prefix/$1" ] || return 0
  mkdir -p "$(dirname "$staging/old/$1")"
  mv "$prefix/$1" "$staging/old/$1"
}

place() { # PATH below the prefix
  make_folder "$(dirname "$prefix/$1")"
  retire "$1"
  printf '%s\n' "$1" >>"$work/placed"
  mv "$staging/new/$1" "$prefix/$1"
}

# Prints the paths of one kind that an earlier installation noted.
noted() { # file|folder
  [ ! -f "$manifest" ] || sed -n "s/^$1 //p" "$manifest"
}

place_all() {
  : >"$work/placed"
  noted file >"$work/earlier-files"
  noted folder >"$work/earlier-folders"
  (cd "$staging/new" && find . -type f) | sed 's|^\./||' | LC_ALL=C sort >"$work/files"
  while IFS= read -r file; do retire "$file"; done <"$work/earlier-files"
  while IFS= read -r file; do place "$file"; done <"$work/files"
  make_folder "${manifest%/*}"
  mkdir -p "$staging/new/share/cluster-e2e"
  {
    sed 's/^/file /' "$work/files"
    LC_ALL=C sort -u "$work/earlier-folders" "$work/folders" | sed 's/^/folder /'
  } >"$staging/new/share/cluster-e2e/installed"
  place share/cluster-e2e/installed
}

roll_back() {
  if [ -s "$work/placed" ]; then
    say "putting back what was there"
    while IFS= read -r file; do rm -f "${prefix:?}/$file"; done <"$work/placed"
  fi
  (cd "$staging/old" && find . ! -type d) | while IFS= read -r file; do mv "$staging/old/$file" "$prefix/$file"; done
}

clean() {
  status=$?
  trap '' INT TERM HUP
  if [ "$is_ours" = yes ]; then
    [ "$finished" = yes ] || [ ! -d "$staging/old" ] || roll_back
    rm -rf "$staging"
  fi
  if [ -n "$work" ]; then
    [ "$finished" = yes ] || [ ! -s "$work/folders" ] || remove_folders "$work/folders"
    rm -rf "$work"
  fi
  exit "$status"
}

# From here on, whatever ends this script leaves nothing half done.
begin() {
  finished=no is_ours=no work=''
  # Not between a folder's making and the note that it is ours.
  trap '' INT TERM HUP
  trap clean EXIT
  work=$(mktemp -d "${TMPDIR:-/tmp}/cluster-e2e-install.XXXXXX") || refuse "no temporary folder can be made"
  open_staging
  trap 'exit 130' INT
  trap 'exit 143' TERM
  trap 'exit 129' HUP
}

install() {
  pick_source
  pick_platform
  pick_summer
  begin
  say "cluster-e2e $release for $platform, from $source"
  fetch SHA256SUMS
  verify_signature
  see_platform
  fetch_tree
  try_programs
  place_all
  finished=yes
  remove_folders "$work/earlier-folders"
  tell
}

# Prints the programs, and says what still stands between them and the user.
tell() {
  case ":$PATH:" in
    *":$prefix/bin:"*) ;;
    *) say "$prefix/bin is not on the PATH here. In your shell's profile:  export PATH=\"$prefix/bin:\$PATH\"" ;;
  esac
  sed -n 's|^bin/||p' "$work/files" | while IFS= read -r program; do
    printf '%s\n' "$prefix/bin/$program"
    found=$(command -v "$program") || continue
    [ "$(cd "${found%/*}" && pwd -P)" = "$(cd "$prefix/bin" && pwd -P)" ] ||
      say "$program still means $found: remove that, or put $prefix/bin before it on your PATH"
  done
  command -v ssh >/dev/null || say "the programs need ssh (OpenSSH's client), which is not here"
}

uninstall() {
  [ -f "$manifest" ] || refuse "nothing was installed below $prefix by this script ($manifest is not there)"
  begin
  noted folder >"$work/made"
  noted file >"$work/files"
  while IFS= read -r file; do
    rm -f "${prefix:?}/$file"
    printf '%s\n' "removed $prefix/$file"
  done <"$work/files"
  rm -f "$manifest"
  finished=yes
  rm -rf "$staging"
  remove_folders "$work/made"
}

main() {
  umask 022
  # These make the programs run code that nobody meant.
  unset BUN_OPTIONS BUN_BE_BUN
  parse "$@"
  "$action"
}

# All of it has arrived: nothing above runs before this line.
main "$@"
