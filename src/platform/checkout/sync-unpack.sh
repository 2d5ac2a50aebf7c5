#!/bin/sh
# shellcheck disable=SC2154 # sync-trees.sh sets tests and library
# Makes a node's folders match a checkout. It changes copies beside the folders and then swaps them in, so that an
# earlier failure keeps the previous state. With IN_PLACE, it replaces files one by one, once all have arrived. Runs as root, behind sync-trees.sh; prints nothing. Stdin: an archive with
# the files to send, in tests/ and library/; and lists, whose records each end with a NUL: removed-tests and
# removed-library, files and folders that are removed first; unchanged, tests that stay nevertheless; sent-tests and
# sent-library, what this master then has from the checkout, which stays beside the folders for later syncs.
# Arguments: the folders that lose their own *.py files first, relative to the tests folder.
# Values: NEEDS_LIBRARY and IN_PLACE, "yes" or "no"; LIST, the name of the list of sent files.

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
# Where the tree is changed.
new() { if [ "$IN_PLACE" = yes ]; then printf '%s' "$1"; else beside "$1" new; fi; }
# Links cost nothing, and no file is changed in place: each is removed and created again.
linked() { cp -al "$@" 2>/dev/null || cp -a "$@"; }
# Succeeds also if the only problem is that others removed something meanwhile.
copied() {
  problems=$(cp "$@" 2>&1) || ! printf '%s\n' "$problems" | grep -qv 'No such file or directory$'
}
copy() {
  copied -alT "$1" "$(beside "$1" new)" || {
    rm -rf "$(beside "$1" new)"
    copied -aT "$1" "$(beside "$1" new)" || fail "$FAILED" "cannot copy $1"
  }
  # Python trusts a cache whose source has the same second and size.
  find "$(beside "$1" new)" -type d -name __pycache__ -prune -exec rm -rf {} +
}
# Where a folder has become a file, or a file or link a folder, removes what is in the way.
clear_way() {
  [ -d "$incoming/$2" ] || return 0
  cd "$incoming/$2" || exit
  # shellcheck disable=SC2016 # the inner shell expands these
  find . -mindepth 1 -exec sh -c '
    new=$1
    shift
    for each; do
      if [ -d "$each" ]; then
        { [ -d "$new/$each" ] && [ ! -L "$new/$each" ]; } || rm -f -- "$new/$each"
      elif [ -d "$new/$each" ] && [ ! -L "$new/$each" ]; then
        rm -rf -- "$new/$each"
      fi
    done
  ' sh "$(new "$1")" {} +
}
# Removes what the checkout no longer has, and folders that are empty then.
remove() {
  cd "$(new "$1")" || exit
  xargs -0 -r rm -rf -- <"$incoming/removed-$2"
  xargs -0 -r dirname -z -- <"$incoming/removed-$2" | xargs -0 -r rmdir -p --ignore-fail-on-non-empty -- 2>/dev/null || :
}
keep() {
  cd "$tests" || exit
  xargs -0 -r cp -al --parents -t "$(beside "$tests" new)" -- <"$incoming/unchanged"
}
overlay() {
  [ ! -d "$incoming/$2" ] || linked --remove-destination "$incoming/$2/." "$(beside "$1" new)/"
}
# Renames each file to its place: programs of the platform may use it meanwhile.
replace_in_place() {
  clear_way "$tests" tests
  remove "$tests" tests
  find "$tests" -type d -name __pycache__ -prune -exec rm -rf {} +
  [ -d "$incoming/tests" ] || return 0
  cd "$incoming/tests" || exit
  # shellcheck disable=SC2016 # the inner shell expands these
  find . -type d -exec sh -c '
    to=$1
    shift
    for each; do
      mkdir -p -- "$to/$each" || exit
      find "$each" -maxdepth 1 -type f -print0 | xargs -0 -r mv -f -t "$to/$each" -- || exit
    done
  ' sh "$tests" {} +
}
# Until the swap has happened, files of both states count as sent.
note_both() {
  noted=$(beside "$1" "sent-$LIST")
  [ ! -f "$noted" ] || cat "$noted" >"$incoming/both"
  cat "$incoming/sent-$2" >>"$incoming/both"
  mv -f "$incoming/both" "$noted"
}
note_sent() {
  if [ -s "$incoming/sent-$2" ]; then
    mv -f "$incoming/sent-$2" "$(beside "$1" "sent-$LIST")"
  else
    rm -f "$(beside "$1" "sent-$LIST")"
  fi
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
if [ "$IN_PLACE" = yes ]; then
  note_both "$tests" tests
  trap '' HUP INT TERM PIPE
  trap 'clean; exit "$HALFWAY"' EXIT
  replace_in_place
  note_sent "$tests" tests
  trap clean EXIT
  exit
fi
copy "$tests"
clear_way "$tests" tests
cd "$(beside "$tests" new)" || exit
for each; do
  [ ! -L "$each" ] || rm -f -- "$each"
  [ ! -d "$each" ] || find "./$each" -maxdepth 1 ! -type d -name '*.py' -delete
done
remove "$tests" tests
keep
overlay "$tests" tests
if [ "$NEEDS_LIBRARY" = yes ]; then
  copy "$library"
  clear_way "$library" library
  remove "$library" library
  overlay "$library" library
  note_both "$library" library
fi
note_both "$tests" tests
trap '' HUP INT TERM PIPE
swap "$tests" || fail "$FAILED" "cannot replace $tests"
if [ "$NEEDS_LIBRARY" = yes ]; then
  swap "$library" || {
    rm -rf "$tests" && mv "$(beside "$tests" former)" "$tests"
    fail "$FAILED" "cannot replace $library"
  }
fi
[ -z "$library" ] || note_sent "$library" library
note_sent "$tests" tests
