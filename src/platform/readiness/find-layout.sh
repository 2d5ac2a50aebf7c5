#!/bin/sh
# Sets layout to the name of the node's layout, or to nothing if no installation has started. Lines for other scripts;
# runs as root.
# Values: LAYOUT_FILE; LAYOUTS, the names of all layouts; for each, VERSION_FILE_<name> and MARKER_<name>, files that
# only an installation has.

layout=$(cat "$LAYOUT_FILE" 2>/dev/null || :)
for each in $LAYOUTS; do
  version_file='' marker=''
  eval "version_file=\$VERSION_FILE_$each marker=\$MARKER_$each"
  [ -n "$layout" ] || [ ! -e "$version_file" ] || layout=$each
  [ -n "$layout" ] || [ ! -e "$marker" ] || layout=$each
done
