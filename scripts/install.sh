#!/bin/sh
# Installs, upgrades or removes the programs of cluster-e2e, with their manual pages and completions. Verifies everything
# before it installs anything, and leaves nothing half installed.
set -eu

# The release script writes the values between these quotes.
release=''
download_root=''
signer=''
# The checksums of all other files of this release, so that pinning this script pins what it installs.
sums=''

usage() {
  cat <<'USAGE'
Usage: install.sh [OPTIONS]

  --prefix DIR          install below DIR instead of /usr/local: programs in DIR/bin, the rest in DIR/share
  --version TAG         install the release TAG instead of this script's own
  --from URL-OR-FOLDER  take the release's files from there
  --tree FOLDER         install what is in FOLDER/bin and FOLDER/share, which nothing verifies, instead of a release
  --require-signature   also refuse a release whose signature cannot be verified
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
  own_release=$release
  prefix=/usr/local from='' tree='' action=install signature=wanted remedy=''
  while [ $# -gt 0 ]; do
    case $1 in
      --prefix | --version | --from | --tree) [ -n "${2:-}" ] || wrong_usage "$1 needs a value" ;;
    esac
    case $1 in
      --prefix) prefix=$2 && shift ;;
      --version) release=$2 && shift ;;
      --from) from=${2%/} && shift ;;
      --tree) tree=$2 action=install_tree && shift ;;
      --require-signature) signature=required ;;
      --uninstall) action=uninstall ;;
      --help | -h) usage && exit 0 ;;
      *) wrong_usage "unknown option: $1" ;;
    esac
    shift
  done
  case $prefix in /*) ;; *) prefix=$PWD/$prefix ;; esac
  prefix=${prefix%/}
  [ -n "$prefix" ] || wrong_usage "the prefix cannot be /: pass another --prefix"
  manifest=$prefix/share/cluster-e2e/installed
  staging=$prefix/.cluster-e2e-installing
  lock=$prefix/.cluster-e2e-lock
}

pick_source() {
  [ -n "$release" ] || wrong_usage "no release was given: pass --version"
  case $release in *[!0-9.]*) wrong_usage "$release is not a release such as 2026.01.31.0" ;; esac
  [ -n "$from" ] || [ -n "$download_root" ] || wrong_usage "no download URL was given: pass --from"
  source=${from:-${download_root%/}/$release}
  # Without the password that the URL may contain.
  shown=$(printf '%s\n' "$source" | sed 's|^\([a-z]*://\)[^/]*@|\1|')
}

pick_platform() {
  system=$(uname -s) machine=$(uname -m)
  case $system in
    Linux) system=linux ;;
    Darwin) system=darwin ;;
    *) refuse "$system is not supported, only Linux and macOS" ;;
  esac
  case $machine in
    x86_64 | amd64) machine=x64 ;;
    aarch64 | arm64) machine=arm64 ;;
    *) refuse "$machine processors are not supported, only x86-64 and 64-bit ARM" ;;
  esac
  # Under Rosetta, the shell reports an Intel machine.
  if [ "$system" = darwin ] && [ "$(sysctl -n sysctl.proc_translated 2>/dev/null || :)" = 1 ]; then machine=arm64; fi
  # Some systems have a processor and a kernel of 64 bits, but programs of 32.
  [ "$(getconf LONG_BIT 2>/dev/null || echo 64)" != 32 ] || refuse "this system is one of 32 bits, but the programs need one of 64"
  platform=$system-$machine
  [ "$system" = darwin ] || pick_c_library
}

# Alpine may also have a loader of the GNU C library, from its package gcompat, with which the programs don't run. Debian may also have
# musl's.
pick_c_library() {
  case $(ldd --version 2>&1 || :) in
    *musl*) musl && return ;;
  esac
  ! has_loader /lib/ld-linux-* /lib64/ld-linux-* || return 0
  has_loader /lib/ld-musl-* ||
    refuse "the programs need the GNU C library (2.17 or later) or musl, which this system lacks: use another image, such as debian:12-slim"
  musl
}

has_loader() { # PATHS
  for loader in "$@"; do [ ! -e "$loader" ] || return 0; done
  return 1
}

musl() {
  platform=$platform-musl
  remedy="; on Alpine, run: apk add libstdc++"
}

fetch() { # NAME
  case $source in
    http://* | https://*)
      # Not wget: it follows a redirect from https to http.
      command -v curl >/dev/null ||
        refuse "cannot download without curl: install it, or download the files of $shown in another way and pass their folder with --from"
      ;;
  esac
  # A file without an end would fill the disk. These are blocks of 512 bytes, or of 1,024 in some shells.
  case $1 in SHA256SUMS*) most=2000 ;; *) most=2000000 ;; esac
  (
    trap '' XFSZ
    # shellcheck disable=SC3045 # dash, bash and busybox have it
    ulimit -f "$most" 2>/dev/null || :
    copy "$1"
  ) || refuse "cannot download $shown/$1"
}

copy() { # NAME
  case $source in
    http://* | https://*)
      # A stalled download fails after a minute. An https download never uses http, not even for one redirect of several.
      curl --fail --silent --show-error --location --proto "=${source%%:*},https" --proto-redir "=${source%%:*},https" \
        --retry 2 --connect-timeout 30 --speed-limit 1000 --speed-time 60 --output "$work/$1" "$source/$1"
      ;;
    # Nobody may ever write to a pipe.
    *) [ ! -p "$source/$1" ] && cp "$source/$1" "$work/$1" ;;
  esac
}

pick_summer() {
  if command -v sha256sum >/dev/null; then
    summer=sha256sum
  elif command -v shasum >/dev/null; then
    summer='shasum -a 256'
  elif command -v openssl >/dev/null; then
    summer='openssl dgst -sha256 -r'
  else
    refuse "cannot verify checksums without sha256sum, shasum or openssl: install one of them"
  fi
}

# Prints the SHA-256 of a file in hexadecimal digits.
sum_of() { # FILE
  # shellcheck disable=SC2086 # a command and its options
  $summer "$1" | sed 's/[^0-9a-f].*//'
}

fetch_verified() { # NAME
  expected=$(sed -n "s/^\([0-9a-f]\{64\}\)  $1\$/\1/p" "$work/SHA256SUMS")
  [ "${#expected}" = 64 ] || refuse "SHA256SUMS does not list $1 exactly once"
  fetch "$1"
  [ "$(sum_of "$work/$1")" = "$expected" ] || refuse "the checksum of $1 does not match SHA256SUMS"
}

can_verify_signatures() {
  command -v ssh-keygen >/dev/null && ! ssh-keygen -Y verify 2>&1 </dev/null | grep -qE 'unknown|illegal'
}

# Compares SHA256SUMS with what this script knows of its own release, and with the signature.
verify_sums() {
  is_own=no
  if [ "$release" = "$own_release" ] && [ -n "$sums" ]; then
    is_own=yes
    [ "$(sed '/^[0-9a-f]*  install\.sh$/d' "$work/SHA256SUMS")" = "$sums" ] ||
      refuse "SHA256SUMS has other checksums than this script, which belongs to release $release"
  fi
  verify_signature
}

verify_signature() {
  if [ -z "$signer" ]; then
    unverified "this release is not signed"
  elif can_verify_signatures; then
    fetch SHA256SUMS.sig
    printf 'cluster-e2e namespaces="cluster-e2e-release" %s\n' "$signer" >"$work/allowed_signers"
    ssh-keygen -Y verify -f "$work/allowed_signers" -I cluster-e2e -n cluster-e2e-release -s "$work/SHA256SUMS.sig" \
      <"$work/SHA256SUMS" >/dev/null 2>&1 || refuse "the signature of SHA256SUMS is invalid"
  else
    lack="the signature is not verified, because there is no ssh-keygen (8.2 or later)"
    [ "$is_own" = yes ] || refuse "$lack: install it, or use the install.sh of release $release"
    unverified "$lack"
  fi
}

unverified() { # REASON
  [ "$signature" != required ] || refuse "$1"
  if [ "$is_own" = yes ]; then
    say "$1; this script knows the checksums"
    return 0
  fi
  case $source in
    http://127.* | http://localhost[:/]*) ;;
    http://*) refuse "$1, and http downloads can be tampered with: use an https URL" ;;
  esac
  say "$1; the checksums are"
}

see_platform() {
  ! grep -q -- "-$platform\(\.tar\.xz\)\{0,1\}\$" "$work/SHA256SUMS" || return 0
  there=$(sed -n 's/.*[0-9]-\([a-z]*-[a-z0-9]*\(-musl\)\{0,1\}\)\.tar\.xz$/\1/p' "$work/SHA256SUMS" | tr '\n' ' ')
  refuse "release $release does not support $platform, only: ${there% }"
}

# Fills $staging/new with bin and share.
fetch_tree() {
  if command -v xz >/dev/null || [ "$system" = darwin ]; then fetch_archive; else fetch_one_by_one; fi
}

fetch_archive() {
  archive=cluster-e2e-$release-$platform
  fetch_verified "$archive.tar.xz"
  unpack "$work/$archive.tar.xz" ||
    refuse "cannot unpack $archive.tar.xz, which needs 300 MB of memory, and 400 MB of free space in $prefix"
  mv "$staging/unpacked/$archive" "$staging/new" 2>/dev/null || refuse "$archive.tar.xz does not contain the expected files"
}

# Not every tar can read xz. On a Mac, where there is no xz program, tar can.
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
  tar -xzof "$work/cluster-e2e-$release-share.tar.gz" -C "$staging/new" || refuse "cannot unpack the manual pages"
  sed -n "s/^[0-9a-f]*  \(cluster-[a-z]*-$platform\)\$/\1/p" "$work/SHA256SUMS" >"$work/programs"
  [ -s "$work/programs" ] || refuse "the release has no programs for $platform"
  while IFS= read -r file; do
    fetch_verified "$file"
    chmod 755 "$work/$file"
    mv "$work/$file" "$staging/new/bin/${file%-"$platform"}" || refuse "there is no space for $file in $prefix"
  done <"$work/programs"
}

# Creates a folder with its parents, and records which of them did not exist.
make_folder() { # FOLDER
  [ ! -d "$1" ] || return 0
  make_folder "$(dirname "$1")"
  printf '%s\n' "$1" >>"$folders"
  # Another installation may create it at the same moment.
  mkdir "$1" 2>/dev/null || [ -d "$1" ] || cannot_write "$(dirname "$1")"
}

remove_folders() { # LIST, outermost first
  sed '1!G;h;$!d' "$1" | while IFS= read -r folder; do rmdir "$folder" 2>/dev/null || :; done
}

cannot_write() { # FOLDER
  refuse "cannot write to $1: run this with sudo, or pass --prefix \"\$HOME/.local\""
}

# Creates the staging folder on the prefix's file system. Only the holder of the lock touches it.
open_staging() {
  folders=$work/folders
  : >"$folders"
  make_folder "$prefix"
  for folder in "$prefix" "$prefix/bin" "$prefix/share"; do [ ! -d "$folder" ] || [ -w "$folder" ] || cannot_write "$folder"; done
  take_lock
  has_lock=yes
  check_remains
  is_ours=yes
  [ ! -e "$staging" ] || recover
  mkdir -p "$staging/old" 2>/dev/null || cannot_write "$prefix"
  cat "$folders" >"$staging/folders"
  folders=$staging/folders
  checked=$manifest
  noted file >"$staging/listed"
  check_files "$staging/listed"
  noted folder >"$staging/listed"
  check_folders "$staging/listed"
}

# Identifies a process: a process id alone is used again, and means something else on another computer or in another container.
identity() { # PID
  computer=$(printf '%s\n' "$(uname -n)-$(readlink /proc/self/ns/pid 2>/dev/null || :)" | sed 's/[^0-9A-Za-z]/-/g')
  printf '%s\n' "$computer:$1:$(started "$1")"
}

# Prints when a process started; nothing if there is none.
started() { # PID
  if [ -e /proc/self/stat ]; then
    sed 's/.*) //; s/^\([^ ]* \)\{19\}\([^ ]*\) .*/\2/' "/proc/$1/stat" 2>/dev/null || :
  else
    LC_ALL=C TZ=UTC ps -o lstart= -p "$1" 2>/dev/null | sed 's/[^0-9A-Za-z]/-/g'
  fi
}

# The lock is a link whose target identifies its holder. It outlives a holder that is killed; then $lock.HOLDER, which only one
# process can create, names the next one. The links are removed in the order in which they are followed.
take_lock() {
  me=$(identity $$) link=$lock first=''
  while printf '%s\n' "$link" >>"$work/links" && ! ln -s "$me" "$link" 2>/dev/null; do
    holder=$(readlink "$link") || cannot_write "$prefix"
    first=${first:-$holder}
    pid=${holder%:*} && pid=${pid##*:}
    case $pid in '' | *[!0-9]*) in_use "$holder" ;; esac
    # That of a process elsewhere can't be seen from here.
    case $(identity "$pid") in "$holder") in_use "$holder" ;; "${holder%:*}":*) ;; *) in_use "$holder" ;; esac
    link=$lock.$holder
  done
  # Meanwhile, the lock may have been released, and taken by another process.
  [ "$link" = "$lock" ] || [ "$(readlink "$lock")" = "$first" ] || {
    rm -f "$link"
    refuse "another installation or removal has just ended there: try again"
  }
}

in_use() { # HOLDER
  refuse "another installation or removal is running there ($1). If not, remove $lock* and try again"
}

# Undoes what a killed installation has changed. The folders that it created count as ours.
recover() {
  say "an earlier installation or removal was killed: its changes are undone"
  roll_back
  [ ! -e "$staging/folders" ] || cat "$staging/folders" >>"$folders"
  rm -rf "$staging"
}

# Refuses remains that no installation leaves: what undoes one moves and removes what they name.
check_remains() {
  checked=$staging
  for folder in "$staging" "$staging/old"; do [ ! -L "$folder" ] || not_ours "a link, ${folder##*/}"; done
  [ -d "$staging" ] || return 0
  [ ! -e "$staging/placed" ] || check_files "$staging/placed"
  [ ! -d "$staging/old" ] || (cd "$staging/old" && find . ! -type d) | sed 's|^\./||' >"$work/old"
  [ ! -s "$work/old" ] || check_files "$work/old"
  [ ! -e "$staging/folders" ] || check_folders "$staging/folders"
}

# Refuses a list with a path that this script never writes: it moves and removes what the list names.
check_files() { # LIST
  while IFS= read -r file; do
    case /$file/ in */../* | */./* | *//*) not_ours "$file" ;; esac
    case $file in bin/?* | share/?*) ;; *) not_ours "$file" ;; esac
    # Only bin and share themselves may be links, which the user made.
    top=$(cd "$prefix/${file%%/*}" 2>/dev/null && pwd -P) || continue
    real=$(cd "$(dirname "$prefix/$file")" 2>/dev/null && pwd -P) || continue
    inner=$(dirname "${file#*/}")
    [ "$inner" != . ] || inner=''
    [ "$real" = "$top${inner:+/$inner}" ] || not_ours "$file"
  done <"$1"
}

# They are the prefix, what it is in, or what is in it.
check_folders() { # LIST
  while IFS= read -r folder; do
    case $prefix/ in "$folder"/*) continue ;; esac
    inner=${folder#"$prefix/"}
    [ "$inner" != "$folder" ] || not_ours "$folder"
    case /$inner/ in */../* | */./* | *//*) not_ours "$folder" ;; esac
    case $inner in bin | bin/* | share | share/*) ;; *) not_ours "$folder" ;; esac
  done <"$1"
}

not_ours() { # PATH
  refuse "$checked lists $1, which this script never installs: correct that, or remove it and the programs by hand"
}

# Every program must start on this machine and report the expected release.
try_programs() {
  for program in "$staging"/new/bin/*; do
    said=$("$program" --version 2>&1) ||
      refuse "${program##*/} does not start on this machine: $(printf '%s\n' "$said" | sed -n 1p)$remedy"
    [ "$said" = "$release" ] || refuse "${program##*/} belongs to release $said, not $release"
  done
}

# Moves existing files aside until everything is in place.
retire() { # PATH below the prefix
  [ -e "$prefix/$1" ] || [ -L "$prefix/$1" ] || return 0
  mkdir -p "$(dirname "$staging/old/$1")"
  mv "$prefix/$1" "$staging/old/$1"
}

place() { # PATH below the prefix
  make_folder "$(dirname "$prefix/$1")"
  retire "$1"
  printf '%s\n' "$1" >>"$staging/placed"
  mv "$staging/new/$1" "$prefix/$1"
}

# Prints the paths of one kind that an earlier installation recorded.
noted() { # file|folder
  [ ! -f "$manifest" ] || sed -n "s/^$1 //p" "$manifest"
}

place_all() {
  noted file >"$work/earlier-files"
  noted folder >"$work/earlier-folders"
  (cd "$staging/new" && find . -type f) | sed 's|^\./||' | LC_ALL=C sort >"$work/files"
  while IFS= read -r file; do retire "$file"; done <"$work/earlier-files"
  while IFS= read -r file; do place "$file"; done <"$work/files"
  make_folder "${manifest%/*}"
  mkdir -p "$staging/new/share/cluster-e2e"
  {
    sed 's/^/file /' "$work/files"
    LC_ALL=C sort -u "$work/earlier-folders" "$folders" | sed 's/^/folder /'
  } >"$staging/new/share/cluster-e2e/installed"
  place share/cluster-e2e/installed
}

roll_back() {
  if [ -s "$staging/placed" ]; then
    say "restoring the previous files"
    while IFS= read -r file; do rm -f "${prefix:?}/$file"; done <"$staging/placed"
  fi
  [ ! -d "$staging/old" ] || (cd "$staging/old" && find . ! -type d) | while IFS= read -r file; do mv "$staging/old/$file" "$prefix/$file"; done
}

clean() {
  status=$?
  trap '' INT TERM HUP
  if [ "$is_ours" = yes ]; then
    [ "$finished" = yes ] || roll_back
    [ "$folders" = "$work/folders" ] || cat "$folders" >"$work/folders"
    rm -rf "$staging"
  fi
  if [ "$has_lock" = yes ]; then
    while IFS= read -r link; do rm -f "$link"; done <"$work/links"
    [ "$finished" = no ] || [ ! -s "$work/made" ] || remove_folders "$work/made"
  fi
  if [ -n "$work" ]; then
    [ "$finished" = yes ] || [ ! -s "$work/folders" ] || remove_folders "$work/folders"
    rm -rf "$work"
  fi
  exit "$status"
}

# From here on, whatever ends this script, it leaves nothing half done.
begin() {
  finished=no has_lock=no is_ours=no work='' folders=''
  # Not between creating a folder and recording that it is ours.
  trap '' INT TERM HUP
  trap clean EXIT
  work=$(mktemp -d "${TMPDIR:-/tmp}/cluster-e2e-install.XXXXXX") ||
    refuse "cannot create a temporary folder in ${TMPDIR:-/tmp}: set TMPDIR to one that you can write to"
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
  say "cluster-e2e $release for $platform, from $shown"
  fetch SHA256SUMS
  verify_sums
  see_platform
  fetch_tree
  try_programs
  finish
}

# What scripts/install-clone has built.
install_tree() {
  begin
  mkdir "$staging/new"
  cp -R "$tree/bin" "$tree/share" "$staging/new" || refuse "cannot copy $tree to $prefix"
  find "$staging/new" -type f -exec chmod 644 {} +
  chmod 755 "$staging"/new/bin/*
  finish
}

finish() {
  place_all
  finished=yes
  remove_folders "$work/earlier-folders"
  tell
}

# Prints the programs, and what the user still has to do before using them.
tell() {
  case ":$PATH:" in
    *":$prefix/bin:"*) ;;
    *) say "$prefix/bin is not on your PATH. Add this line to your shell's profile:  export PATH=\"$prefix/bin:\$PATH\"" ;;
  esac
  sed -n 's|^bin/||p' "$work/files" | while IFS= read -r program; do
    printf '%s\n' "$prefix/bin/$program"
    found=$(command -v "$program") || continue
    [ "$(cd "${found%/*}" && pwd -P)" = "$(cd "$prefix/bin" && pwd -P)" ] ||
      say "$program still runs $found: remove that file, or put $prefix/bin before its folder on your PATH"
  done
  command -v ssh >/dev/null || say "the programs need ssh, which is missing: install the OpenSSH client"
}

not_installed() {
  refuse "this script did not install anything in $prefix ($manifest does not exist)"
}

uninstall() {
  # A killed installation may have moved the list aside.
  [ -f "$manifest" ] || [ -e "$staging" ] || not_installed
  begin
  [ -f "$manifest" ] || not_installed
  noted folder >"$work/made"
  noted file >"$work/files"
  while IFS= read -r file; do
    rm -f "${prefix:?}/$file"
    printf '%s\n' "removed $prefix/$file"
  done <"$work/files"
  rm -f "$manifest"
  finished=yes
}

main() {
  umask 022
  # These variables would make the programs run other code.
  unset BUN_OPTIONS BUN_BE_BUN BUN_INSPECT BUN_INSPECT_CONNECT_TO BUN_INSPECT_NOTIFY BUN_INSPECT_PRELOAD
  parse "$@"
  "$action"
}

# The whole script has arrived: nothing above runs before this line.
main "$@"
