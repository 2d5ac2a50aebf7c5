import { quote } from "../../ssh/quote.ts";
import type { SyncPlan } from "./checkout-plan.ts";
import type { Layout } from "../layout.ts";
import { layoutLines } from "../readiness/layout-lines.ts";

/** Exit statuses of the two scripts below, besides 0. */
export const syncStatuses = { notInstalled: 10, brokenTransfer: 11, failed: 12 } as const;

/**
 * Prints everything that a sync needs to know about a node, in one round trip: `# layout <name>`, `# version` and the version file, then the contents
 * of the two places, as `# <place>`, each followed by `sha256sum` lines, `mode <bits> <path>` for files whose bits are not 644, and `link 0 <path>`
 * for links that look like tests. Runs as root.
 */
export const stateScript = (layouts: readonly Layout[]): string => `: e2e-sync-state
${layoutLines(layouts)}
newline='
'
sums() {
  printf '# %s\\n' "$1"
  cd "$2"
  find . -type f ! -name '*.pyc' -exec sha256sum {} +
  # No file of a checkout has a line break in its name; one here could pose as the sums of others. sha256sum escapes it.
  find . -type f ! -name '*.pyc' ! -perm 644 ! -path "*$newline*" -printf 'mode %m %P\\n'
  find . -type l -name '*.py' ! -path "*$newline*" -printf 'link 0 %P\\n'
}
printf '# layout %s\\n' "$layout"
case $layout in
${layouts.map((layout) => `${layout.name})\n${layoutState(layout)};;`).join("\n")}
esac
`;

const layoutState = (layout: Layout): string => `${findPlaces(layout)}
[ -e ${quote([layout.versionFile])} ] || fail ${syncStatuses.notInstalled} ${quote([`${layout.versionFile} does not exist`])}
printf '# version\\n%s\\n' "$(cat ${quote([layout.versionFile])})"
sums tests "$tests"
[ -z "$library" ] || sums library "$library"
`;

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
tar -x -f - -C "$incoming" --no-same-owner || fail ${syncStatuses.brokenTransfer} "the transfer broke off"
[ -f "$incoming/complete" ] || fail ${syncStatuses.brokenTransfer} "the transfer broke off"
copy "$tests"
cd "$(beside "$tests" new)"
${removals(plan).join("\n")}
keep
overlay "$tests" tests
${needsLibrary(plan) ? 'copy "$library"; overlay "$library" library' : ""}
trap '' HUP INT TERM PIPE
swap "$tests" || fail ${syncStatuses.failed} "$tests could not be replaced"
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
flock -w 60 9 || fail ${syncStatuses.failed} "another sync to this node is under way"
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
# Links cost nothing, and no file is changed in place: each is removed and made again.
linked() { cp -al "$@" 2>/dev/null || cp -a "$@"; }
copy() {
  linked "$1" "$(beside "$1" new)" || fail ${syncStatuses.failed} "$1 could not be copied"
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
  fail ${syncStatuses.failed} "$library could not be replaced"
fi`;

function removals({ emptiedFolders, removedFolders }: SyncPlan): readonly string[] {
  return [
    ...emptiedFolders.map(
      (folder) => `[ ! -d ${quote([folder])} ] || find ${quote([folder])} -maxdepth 1 ! -type d -name '*.py' -delete`,
    ),
    ...removedFolders.map((folder) => `rm -rf ${quote([folder])}`),
  ];
}
