import { quote } from "../../ssh/quote.ts";
import { installPaths, installUnits } from "../install-paths.ts";
import type { Layout } from "../layout.ts";
import { layouts } from "../layouts/find-layout.ts";
import { layoutLines } from "./layout-lines.ts";

/** Time limit for one run of the node's own check. */
const checkSeconds = 20;
const tailLines = 20;
/**
 * Limit for a log, and for a file of which one line is needed: all answers together must stay far below the part of a
 * command's output that is kept.
 */
const tailBytes = 64_000;

/**
 * Collects everything that `wait` needs from a node, in one round trip, as root. $2: how often to run a check that
 * passes; $3: the seconds between. It prints lines `key=value`; after `log=` and `check=` come whole lines of text,
 * until that list ends:
 *
 *     layout=cluster            empty if no installation has started
 *     status=exit 0             status of the install script; or `running`, or empty
 *     unit=active               systemd's ActiveState of the install unit
 *     setup.NAME=failed         ActiveState of a unit that continues after the install script
 *     check.status=1            exit status of the node's own check; empty while that program doesn't exist
 *     config={"ssl_enabled": …} the platform's own TLS setting, in one line
 *     check=…                   the check's output
 *     log=…                     the last lines of the install log, if the installation failed
 */
export const nodeScript = `
LC_ALL=C
export LC_ALL
${layoutLines(layouts)}
state_of() { systemctl show -p ActiveState "$1" 2>/dev/null | sed 's/^ActiveState=//'; }
lines_of() { sed "s/^/$1=/"; }

status=$(head -c 100 ${installPaths.installStatus} 2>/dev/null || :)
unit=$(state_of ${installUnits.install})
# The status is written before the unit ends, so a second reading is at least as recent as the unit's state.
[ "$status" != running ] || [ "$unit" = active ] || status=$(head -c 100 ${installPaths.installStatus} 2>/dev/null || :)
# A machine that was restarted during the installation resumes it automatically, but not at once.
[ "$status:$unit" != running:inactive ] || ! systemctl is-enabled --quiet ${installUnits.install} 2>/dev/null || unit=activating
# Not echo: in some shells, it turns \\n into a line break.
say() { printf '%s=%s\\n' "$1" "$(printf '%s' "$2" | tr -d '\\n')"; }
say layout "$layout"
say status "$status"
say unit "$unit"
failed=no
case $status in '' | running | 'exit 0') ;; *) failed=yes ;; esac
[ "$status" != running ] || [ "$unit" = active ] || [ "$unit" = activating ] || failed=yes

looks=\${2:-1}
pause=\${3:-0}
run_check() {
  output=$(timeout ${checkSeconds} "$@" 2>&1 </dev/null)
  result=$?
  while [ "$result" = 0 ] && [ "$looks" -gt 1 ]; do
    sleep "$pause"
    output=$(timeout ${checkSeconds} "$@" 2>&1 </dev/null)
    result=$?
    looks=$((looks - 1))
  done
  say check.status "$result"
  printf '%s\\n' "$output" | tail -c 16000 | lines_of check
}

case $layout in
${layouts.map(layoutCase).join("\n")}
esac

[ "$failed" != yes ] || tail -c ${tailBytes} ${installPaths.installLog} 2>/dev/null | tail -n ${tailLines} | lines_of log
`;

function layoutCase(layout: Layout): string {
  const units = layout.setupUnits.map(
    (unit) => `    state=$(state_of ${quote([unit])}.service)
    say ${quote([`setup.${unit}`])} "$state"
    [ "$state" != failed ] || { failed=setup; journalctl -q -o cat -n ${tailLines} -u ${quote([unit])}.service | tail -c ${tailBytes} | lines_of log; }`,
  );
  return [
    `  ${layout.name})`,
    ...units,
    `    say config "$(head -c ${tailBytes} ${quote([layout.bootstrapConfigFile])} 2>/dev/null)"`,
    `    if [ "$status" != running ] && [ "$failed" = no ]; then`,
    `      ${checkChain(layout)}`,
    "    fi",
    "    ;;",
  ].join("\n");
}

/** Runs the first check whose program exists, through the wrapper if the node has it. */
function checkChain(layout: Layout): string {
  const branches = layout.nodeChecks.map((words) => {
    const wrapper = layout.nodeCheckWrapper;
    const plain = `run_check ${quote(words)}`;
    const call =
      wrapper === undefined
        ? plain
        : `if [ -x ${quote([wrapper])} ]; then run_check ${quote([wrapper, ...words])}; else ${plain}; fi`;
    return `if [ -x ${quote([words[0] ?? ""])} ]; then ${call}`;
  });
  return `${branches.join("\n      el")}\n      fi`;
}
