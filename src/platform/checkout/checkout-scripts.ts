import { quote } from "../../ssh/quote.ts";
import type { SyncFile, SyncPlan } from "./checkout-plan.ts";
import type { Layout } from "../layout.ts";
import { layoutLines } from "../readiness/layout-lines.ts";

/** Exit statuses of the scripts below, besides 0. */
export const syncStatuses = { notInstalled: 10, brokenTransfer: 11, failed: 12 } as const;

/**
 * Prints everything that a sync usually needs to know about a node, in one round trip: `# layout <name>`, `# version` and the version file, then
 * `# tests` and the contents of the two places, as records that each end with a NUL: `<mode> <size> <time> <place>/<path>`, or
 * `link 0 0 <place>/<path>` for links that look like tests. It reads no file's contents. Runs as root.
 */
export const stateScript = (layouts: readonly Layout[]): string => `: e2e-sync-state
${layoutLines(layouts)}
records() {
  cd "$2"
  find . -type f ! -name '*.pyc' -printf "%m %s %T@ $1/%P\\0"
  find . -type l -name '*.py' -printf "link 0 0 $1/%P\\0"
}
printf '# layout %s\\n' "$layout"
case $layout in
${layouts.map((layout) => `${layout.name})\n${layoutState(layout)};;`).join("\n")}
esac
`;

const layoutState = (layout: Layout): string => `${findPlaces(layout)}
[ -e ${quote([layout.versionFile])} ] || fail ${syncStatuses.notInstalled} ${quote([`${layout.versionFile} does not exist`])}
printf '# version\\n%s\\n' "$(cat ${quote([layout.versionFile])})"
echo '# tests'
records tests "$tests"
[ -z "$library" ] || records library "$library"
`;

/**
 * Prints `# <place>` and `sha256sum` lines for both places. Reads the files' paths from stdin, see `sumsInput`: a file that is gone meanwhile has no
 * line. Runs as root.
 */
export const sumsScript = (files: readonly SyncFile[], layout: Layout): string => `: e2e-sync-sums
${findPlaces(layout)}
sums() { cd "$1" && xargs -0 -r sha256sum -- 2>/dev/null || :; }
echo '# tests'
head -c ${Buffer.byteLength(pathsIn("tests", files))} | sums "$tests"
echo '# library'
[ -z "$library" ] || sums "$library"
`;

/** Stdin of `sumsScript`: paths that each end with a NUL, those of the tests first. */
export const sumsInput = (files: readonly SyncFile[]): string => pathsIn("tests", files) + pathsIn("library", files);

const pathsIn = (place: SyncFile["place"], files: readonly SyncFile[]): string =>
  files
    .filter((file) => file.place === place)
    .map(({ path }) => `./${path}\0`)
    .join("");

/**
 * Reads `checkoutArchive` from stdin and makes the node's folders match the plan. It changes copies beside the folders and then swaps them in, so
 * that an earlier failure keeps the previous state. One sync at a time per node. Runs as root, in a POSIX sh, with GNU tools.
 */
export function unpackScript(plan: SyncPlan): string {
  const { layout } = plan;
  return `${findPlaces(layout)}
${needsLibrary(plan) ? `[ -n "$library" ] || fail ${syncStatuses.notInstalled} ${quote([`there is no ${layout.internalLibrary} in ${layout.bootstrapLibraryFolder}`])}` : ""}
${unpackFunctions}
incoming=$(beside "$tests" incoming)
clean
trap clean EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM PIPE
mkdir "$incoming"
tar -x -f - -C "$incoming" --no-same-owner || fail ${syncStatuses.brokenTransfer} "the transfer was interrupted"
[ -f "$incoming/complete" ] || fail ${syncStatuses.brokenTransfer} "the transfer was interrupted"
copy "$tests"
cd "$(beside "$tests" new)"
${removals(plan).join("\n")}
keep
overlay "$tests" tests
${needsLibrary(plan) ? 'copy "$library"; overlay "$library" library' : ""}
trap '' HUP INT TERM PIPE
swap "$tests" || fail ${syncStatuses.failed} "cannot replace $tests"
${needsLibrary(plan) ? librarySwap : ""}
`;
}

const needsLibrary = ({ files, unchanged }: SyncPlan): boolean =>
  [...files, ...unchanged].some((file) => file.place === "library");

/** Sets `tests` and `library` to the real folders, after it has undone a swap that a power failure interrupted. */
function findPlaces({ testsFolder, bootstrapLibraryFolder, internalLibrary }: Layout): string {
  return `set -eu
umask 022
export LC_ALL=C
fail() { printf '%s\\n' "$2" >&2; exit "$1"; }
beside() { printf '%s/.%s.cluster-e2e-%s' "$(dirname "$1")" "$(basename "$1")" "$2"; }
recover() { [ -e "$1" ] || [ ! -d "$(beside "$1" former)" ] || mv "$(beside "$1" former)" "$1"; }
tests=$(readlink -f ${quote([testsFolder])}) || fail ${syncStatuses.notInstalled} ${quote([`${testsFolder} does not exist`])}
exec 9<"$(dirname "$tests")"
flock -w 60 9 || fail ${syncStatuses.failed} "another sync to this node is running"
recover "$tests"
[ -d "$tests" ] || fail ${syncStatuses.notInstalled} "$tests does not exist"
library=
for python in ${quote([bootstrapLibraryFolder])}/*/site-packages; do
  [ -d "$python" ] || continue
  recover "$(readlink -f "$python/${internalLibrary}")"
  [ ! -d "$python/${internalLibrary}" ] || library=$(readlink -f "$python/${internalLibrary}")
done`;
}

const unpackFunctions = `clean() {
  cd /
  rm -rf "$incoming"
  for place in "$tests" "$library"; do
    [ -z "$place" ] || rm -rf "$(beside "$place" new)"
    [ ! -d "$place" ] || rm -rf "$(beside "$place" former)"
  done
}
# Links cost nothing, and no file is changed in place: each is removed and created again.
linked() { cp -al "$@" 2>/dev/null || cp -a "$@"; }
copy() {
  linked "$1" "$(beside "$1" new)" || fail ${syncStatuses.failed} "cannot copy $1"
  # Python trusts a cache whose source has the same second and size.
  find "$(beside "$1" new)" -type d -name __pycache__ -prune -exec rm -rf {} +
}
keep() {
  [ -f "$incoming/unchanged" ] || return 0
  cd "$tests"
  xargs -0 cp -al --parents -t "$(beside "$tests" new)" -- <"$incoming/unchanged"
}
overlay() {
  [ ! -d "$incoming/$2" ] || linked --remove-destination "$incoming/$2/." "$(beside "$1" new)/"
}
swap() {
  mv "$1" "$(beside "$1" former)" || return 1
  mv "$(beside "$1" new)" "$1" || { mv "$(beside "$1" former)" "$1"; return 1; }
}
`;

const librarySwap = `if ! swap "$library"; then
  rm -rf "$tests" && mv "$(beside "$tests" former)" "$tests"
  fail ${syncStatuses.failed} "cannot replace $library"
fi`;

function removals({ emptiedFolders, removedFolders }: SyncPlan): readonly string[] {
  return [
    ...emptiedFolders.map(
      (folder) => `[ ! -d ${quote([folder])} ] || find ${quote([folder])} -maxdepth 1 ! -type d -name '*.py' -delete`,
    ),
    ...removedFolders.map((folder) => `rm -rf ${quote([folder])}`),
  ];
}
