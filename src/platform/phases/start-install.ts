import type { Role } from "../../model/cluster-record.ts";
import { installPaths, installUnits } from "../install-paths.ts";
import type { Layout } from "../layout.ts";
import type { Phase } from "./phase.ts";
import { runRemoteScript } from "./remote-script.ts";

/** What nodes install from. */
export interface InstallSource {
  /** Of the bootstrap server. */
  readonly url: string;
  /** As the artifact's `--version` has it. */
  readonly release: string;
}

/** What the install unit runs. Its status and log outlive it, the machine's reboot too. A unit has neither HOME nor USER. */
export const installRunner = (layout: Layout, role: Role, { url, release }: InstallSource): string => `#!/bin/sh
cd ${installPaths.folder} || exit 1
umask 022
exec >${installPaths.installLog} 2>&1 </dev/null
echo running >${installPaths.installStatus}
HOME=/root USER=root LOGNAME=root
export HOME USER LOGNAME

finish() {
  echo "exit $1" >${installPaths.installStatus}.new
  mv -f ${installPaths.installStatus}.new ${installPaths.installStatus}
  exit "$1"
}

tries=0
until curl -fsS --noproxy '*' --connect-timeout 10 --max-time 300 -o ${layout.installScript} ${url}/${layout.installScript}; do
  tries=$((tries + 1))
  if [ "$tries" -ge 30 ]; then
    echo 'The install script could not be read from the bootstrap server ${url}.'
    finish 1
  fi
  sleep 2
done
${shims(layout.installShims(release))}bash ${layout.installScript} ${layout.returnEarlyFlag} ${layout.installRoles[role]}
finish $?
`;

/** Puts each program's stand-in first on the path; the node's own is `$real` in it. */
const shims = (programs: Readonly<Record<string, string>>): string =>
  Object.entries(programs)
    .map(
      ([name, text]) => `mkdir -p ${installPaths.shims}
{
  echo '#!/bin/sh'
  echo "real=$(command -v ${name})"
  cat <<'CLUSTER_E2E_SHIM'
${text}CLUSTER_E2E_SHIM
} >${installPaths.shims}/${name}
chmod 755 ${installPaths.shims}/${name}
PATH=${installPaths.shims}:$PATH
export PATH
`,
    )
    .join("");

/**
 * Begins the installation unless it is under way or ended well, so that it can be asked again after a lost answer. A success of an earlier
 * boot counts; a failure is tried anew.
 */
export const startInstallScript = (layout: Layout, role: Role, source: InstallSource): string => `
main() {
  mkdir -p ${installPaths.folder}
  [ "$(cat ${installPaths.installStatus} 2>/dev/null || :)" != 'exit 0' ] || return 0
  ! systemctl is-active --quiet ${installUnits.install} || return 0
  # The name of an ended unit is free only after these.
  systemctl stop ${installUnits.install} 2>/dev/null || :
  systemctl reset-failed ${installUnits.install} 2>/dev/null || :
  cat >${installPaths.installRunner} <<'CLUSTER_E2E_END'
${installRunner(layout, role, source)}CLUSTER_E2E_END
  echo ${layout.name} >${installPaths.layout}
  rm -f ${installPaths.installLog} ${installPaths.installStatus}
  # A file, not a command: systemd would expand what looks like its variables.
  systemd-run --unit=${installUnits.install} --description='Installs the platform' --remain-after-exit \\
    /bin/sh ${installPaths.installRunner} </dev/null || fail 'systemd-run failed'
}
`;

export const startInstall = (layout: Layout, source: InstallSource): Phase => ({
  title: "Start installation",
  run: async ({ connection, node, reference }, signal) => {
    await runRemoteScript(
      connection,
      {
        name: "e2e-start-install",
        text: startInstallScript(layout, node.role, source),
        arguments: [],
        limitMs: 120_000,
        task: "starting the installation",
        failure: `${reference}: the installation could not be started`,
        errorId: "install-failed",
      },
      signal,
    );
  },
});
