import type { Role } from "../../model/cluster-record.ts";
import { installPaths, installUnits, unitFileOf } from "../install-paths.ts";
import type { Layout } from "../layout.ts";
import { type Phase, runRemoteScript } from "./phase.ts";
import { unitFunctions } from "./unit-functions.ts";

/** The source that the nodes install from. */
export interface InstallSource {
  /** URL of the bootstrap server. */
  readonly url: string;
  /** As reported by the artifact's `--version`. */
  readonly release: string;
}

const bootstrapSeconds = 5 * 60;
const setUpSeconds = 2 * 60 * 60;
const reportSeconds = 30 * 60;

/**
 * The script that the install unit runs. A unit has neither HOME nor USER. The script's status and log outlive it and a reboot; after a reboot in the
 * middle it starts again if possible. The install script and the units that follow it need the bootstrap server, so the node reports to the server
 * only when both have ended, successfully or not. The server's URL is a secret, so it appears in no argument list.
 */
export const installRunner = (layout: Layout, role: Role, { url, release }: InstallSource): string => `#!/bin/sh
cd ${installPaths.folder} || exit 1
umask 022
exec >>${installPaths.installLog} 2>&1 </dev/null
HOME=/root USER=root LOGNAME=root
export HOME USER LOGNAME
bootstrap_url='${url}'

ask() {
  path=$1
  shift
  curl -fsS --noproxy '*' --connect-timeout 10 --max-time 300 --config - "$@" <<END
url = "$bootstrap_url/$path"
END
}

limit() { deadline=$(($(date +%s) + $1)); }

# Fails once the limit has passed.
pause() { [ "$(date +%s)" -lt "$deadline" ] && sleep 2; }

install() {
  if [ "$1" = running ]; then
    echo 'The machine was restarted during the installation, which now starts again.'
    [ ! -e ${layout.installedMarker} ] || return 0
  fi
  echo running >${installPaths.installStatus}
  limit ${bootstrapSeconds}
  until ask ${layout.installScript} -o ${layout.installScript}; do
    pause || {
      echo 'Cannot read the install script from the bootstrap server.'
      return 1
    }
  done
${shims(layout.installShims(release))}  bash ${layout.installScript} ${layout.returnEarlyFlag} ${layout.installRoles[role]}
}

# Whether everything that the install script started has finished.
is_set_up() {
  for unit in ${layout.setupUnits.join(" ")}; do
    case $(systemctl show -p ActiveState "$unit.service") in
      *=failed) return 0 ;;
      *=activating | *=reloading) return 1 ;;
    esac
  done
  [ -e ${layout.installedMarker} ]
}

before=$(cat ${installPaths.installStatus} 2>/dev/null)
status=0
if [ "$before" != 'exit 0' ]; then
  install "$before"
  status=$?
  echo "exit $status" >${installPaths.installStatus}.new
  mv -f ${installPaths.installStatus}.new ${installPaths.installStatus}
fi
limit ${setUpSeconds}
until [ "$status" -ne 0 ] || is_set_up || ! pause; do :; done
limit ${reportSeconds}
until ask installed --data '' -o /dev/null 2>/dev/null || ! pause; do :; done
systemctl --no-reload disable ${installUnits.install} 2>/dev/null
exit "$status"
`;

/** Puts each program's replacement first on the path; in it, `$real` is the node's own program. */
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
 * Starts the installation unless it is already running, so that the script can run again after a lost answer. If the installation has already
 * succeeded, in an earlier boot or just now, the script only reports that to the bootstrap server. It retries a failed installation.
 */
export const startInstallScript = (layout: Layout, role: Role, source: InstallSource): string => `
main() {
  mkdir -p ${installPaths.folder}
  status=$(cat ${installPaths.installStatus} 2>/dev/null || :)
  if [ "$status" = running ] && systemctl is-active --quiet ${installUnits.install}; then return 0; fi
  if [ -e ${unitFileOf(installUnits.install)} ]; then
    systemctl stop ${installUnits.install} 2>/dev/null || :
    systemctl reset-failed ${installUnits.install} 2>/dev/null || :
  fi
  cat >${installPaths.installRunner} <<'CLUSTER_E2E_END'
${installRunner(layout, role, source)}CLUSTER_E2E_END
  echo ${layout.name} >${installPaths.layout}
  [ "$status" = 'exit 0' ] || rm -f ${installPaths.installLog} ${installPaths.installStatus}
  write_unit
  systemctl --no-reload enable ${installUnits.install} || fail 'cannot enable the install unit'
  reload_unless_read ${installUnits.install}
  systemctl start ${installUnits.install} || fail 'the install unit does not start'
}

write_unit() {
  cat >${unitFileOf(installUnits.install)} <<'CLUSTER_E2E_END'
[Unit]
Description=Installs the platform
After=network.target

[Service]
ExecStart=/bin/sh ${installPaths.installRunner}
RemainAfterExit=yes

[Install]
WantedBy=multi-user.target
CLUSTER_E2E_END
  chmod 644 ${unitFileOf(installUnits.install)}
}
${unitFunctions}`;

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
        failure: `${reference}: cannot start the installation`,
        errorId: "install-failed",
      },
      signal,
    );
  },
});
