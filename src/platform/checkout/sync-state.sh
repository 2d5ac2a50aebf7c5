#!/bin/sh
# Prints everything that a sync usually needs to know about a master, in one round trip: "# layout <name>", "#
# version" and the version file, then "# tests" and the contents of both trees, as records that each end with a
# NUL: "<mode> <size> <time> <tree>/<path>", or "link 0 0 <tree>/<path>" for links and the like; finally the lists of
# what earlier syncs have sent: "sent <list> <tree>/<path>". It reads no tested file's contents. Runs as root, behind find-layout.sh and sync-trees.sh.
# Values: for each layout, TESTS_FOLDER_<name>, LIBRARY_FOLDER_<name> and INTERNAL_LIBRARY_<name>.

records() {
  cd "$2" || exit
  # A folder may be removed meanwhile.
  find . -type f ! -name '*.pyc' -printf "%m %s %T@ $1/%P\0" || :
  find . ! -type f ! -type d -printf "link 0 0 $1/%P\0" || :
}

# shellcheck disable=SC2154 # find-layout.sh sets it
printf '# layout %s\n' "$layout"
for each in $LAYOUTS; do
  [ "$each" = "$layout" ] || continue
  version_file=
  eval "version_file=\$VERSION_FILE_$each TESTS_FOLDER=\$TESTS_FOLDER_$each"
  eval "LIBRARY_FOLDER=\$LIBRARY_FOLDER_$each INTERNAL_LIBRARY=\$INTERNAL_LIBRARY_$each"
  find_trees
  [ -e "$version_file" ] || fail "$NOT_INSTALLED" "$version_file does not exist"
  printf '# version\n%s\n' "$(cat "$version_file")"
  echo '# tests'
  # shellcheck disable=SC2154 # sync-trees.sh sets both
  records tests "$tests"
  # shellcheck disable=SC2154
  [ -z "$library" ] || records library "$library"
  for tree in "$tests" "$library"; do
    for list in own beside; do
      [ -z "$tree" ] || cat "$(beside "$tree" "sent-$list")" 2>/dev/null || :
    done
  done
done
