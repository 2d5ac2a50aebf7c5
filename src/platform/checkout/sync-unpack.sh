#!/bin/sh
# shellcheck disable=SC2154 # sync-trees.sh sets tests and library
# Makes a master's folders match a checkout. It changes copies beside the folders and then swaps them in, so that an
# earlier failure keeps the previous state. Runs as root, behind sync-trees.sh; prints nothing. Stdin: the archive of
# checkout.ts.
# Arguments: how many of the folders that follow lose their own *.py files first; those folders; the folders that are
# removed first. All are relative to the tests folder.
# Values: NEEDS_LIBRARY, "yes" or "no".

find_trees
if [ "$NEEDS_LIBRARY" = yes ] && [ -z "$library" ]; then
  fail "$NOT_INSTALLED" "there is no $INTERNAL_LIBRARY in $LIBRARY_FOLDER"
fi

clean() {
  cd /
  rm -rf "$incoming"
  for tree in "$tests" "$library"; do
    [ -z "$tree" ] || rm -rf "$(beside "$tree" new)"
    [ ! -d "$tree" ] || rm -rf "$(beside "$tree" former)"
  done
}
# Links cost nothing, and no file is changed in place: each is removed and created again.
linked() { cp -al "$@" 2>/dev/null || cp -a "$@"; }
copy() {
  linked "$1" "$(beside "$1" new)" || fail "$FAILED" "cannot copy $1"
  # Python trusts a cache whose source has the same second and size.
  find "$(beside "$1" new)" -type d -name __pycache__ -prune -exec rm -rf {} +
}
keep() {
  [ -f "$incoming/unchanged" ] || return 0
  cd "$tests" || exit
  xargs -0 cp -al --parents -t "$(beside "$tests" new)" -- <"$incoming/unchanged"
}
overlay() {
  [ ! -d "$incoming/$2" ] || linked --remove-destination "$incoming/$2/." "$(beside "$1" new)/"
}
swap() {
  mv "$1" "$(beside "$1" former)" || return 1
  mv "$(beside "$1" new)" "$1" || {
    mv "$(beside "$1" former)" "$1"
    return 1
  }
}

incoming=$(beside "$tests" incoming)
clean
trap clean EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM PIPE
mkdir "$incoming"
tar -x -f - -C "$incoming" --no-same-owner || fail "$BROKEN_TRANSFER" "the transfer was interrupted"
[ -f "$incoming/complete" ] || fail "$BROKEN_TRANSFER" "the transfer was interrupted"
copy "$tests"
cd "$(beside "$tests" new)" || exit
emptied=$1
shift
while [ "$emptied" -gt 0 ]; do
  [ ! -d "$1" ] || find "./$1" -maxdepth 1 ! -type d -name '*.py' -delete
  emptied=$((emptied - 1))
  shift
done
[ $# -eq 0 ] || rm -rf -- "$@"
keep
overlay "$tests" tests
if [ "$NEEDS_LIBRARY" = yes ]; then
  copy "$library"
  overlay "$library" library
fi
trap '' HUP INT TERM PIPE
swap "$tests" || fail "$FAILED" "cannot replace $tests"
if [ "$NEEDS_LIBRARY" = yes ] && ! swap "$library"; then
  rm -rf "$tests" && mv "$(beside "$tests" former)" "$tests"
  fail "$FAILED" "cannot replace $library"
fi
