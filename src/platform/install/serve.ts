import { installPaths, installUnits, unitFileOf } from "../install-paths.ts";
import type { Layout } from "../layout.ts";
import { bootstrapServer } from "./bootstrap-server.ts";
import { type Phase, runRemoteScript } from "./phase.ts";
import { unitFunctions } from "./unit-functions.ts";

export interface BootstrapServer {
  /** The first master's private address. */
  readonly address: string;
  readonly port: number;
  /** The first part of every path, 32 hexadecimal digits. On a node, anyone who knows it can read the cluster's secrets. */
  readonly secret: string;
  /** The private addresses of all nodes: nobody else gets an answer. */
  readonly nodeAddresses: readonly string[];
  /** Relative to `genconf/serve`; requested to check that the server works. */
  readonly installScript: string;
}

/** No installation takes longer. A node that never reports that it is done must not keep the server up for the cluster's whole life. */
const longestSeconds = 2 * 60 * 60;

const answerSeconds = 30;

const unitFile = unitFileOf(installUnits.bootstrap);
const enabledLink = `/etc/systemd/system/multi-user.target.wants/${installUnits.bootstrap}.service`;

/**
 * At boot, the server's address may come up after the unit, so the unit restarts without a limit. All options work with systemd 219. No argument list
 * contains the secret.
 */
export const serveScript = (server: BootstrapServer): string => `
main() {
  python=$(find_python)
  [ -n "$python" ] || fail 'there is no Python on this machine'
  rm -f ${installPaths.bootstrapState}
  write_settings
  write_server
  write_end
  write_unit
  systemctl --no-reload enable ${installUnits.bootstrap}
  reload_unless_read ${installUnits.bootstrap}
  systemctl restart ${installUnits.bootstrap}
  deadline=$(($(date +%s) + ${answerSeconds}))
  # Python usually starts in a tenth of a second.
  pause=0.02
  until answers; do
    word=$(last_word)
    case $word in *' is taken by '*) fail "$word" ;; esac
    [ "$(date +%s)" -lt "$deadline" ] || fail "it does not answer at ${server.address}:${server.port}\${word:+: $word}"
    sleep "$pause"
    pause=0.2
  done
}

# Reads the server's own lines: those that systemd adds to the unit's journal name no cause.
last_word() { journalctl -q -n 1 -o cat _SYSTEMD_UNIT=${installUnits.bootstrap}.service || :; }

answers() {
  curl -fsS --noproxy '*' --max-time 5 -o /dev/null --config - 2>/dev/null <<'CLUSTER_E2E_END'
url = "http://${server.address}:${server.port}/${server.secret}/${server.installScript}"
CLUSTER_E2E_END
}

write_settings() {
  cat >${installPaths.bootstrapSettings} <<CLUSTER_E2E_END
{
  "folder": "${installPaths.serve}",
  "state": "${installPaths.bootstrapState}",
  "address": "${server.address}",
  "port": ${server.port},
  "secret": "${server.secret}",
  "nodes": ${JSON.stringify(server.nodeAddresses)},
  "deadline": $(($(date +%s) + ${longestSeconds}))
}
CLUSTER_E2E_END
}

${fixedFunctions}`;

const fixedFunctions = `# /usr/libexec/platform-python: RHEL 8 and later; python2.7: CentOS 7.
find_python() {
  for name in python3 /usr/libexec/platform-python python2.7 python; do
    command -v "$name" || continue
    break
  done
}

write_server() {
  cat >${installPaths.bootstrapServer} <<'CLUSTER_E2E_END'
${bootstrapServer}CLUSTER_E2E_END
}

# Runs whenever the server stops, including for a reboot. The shell has read the whole script before the script removes itself.
write_end() {
  cat >${installPaths.bootstrapEnd} <<'CLUSTER_E2E_END'
grep -qx finished ${installPaths.bootstrapState} || exit 0
{
  rm -f ${enabledLink} ${unitFile}
  rm -rf ${installPaths.serve}
  rm -f ${installPaths.bootstrapSettings} ${installPaths.bootstrapServer} ${installPaths.bootstrapState} ${installPaths.bootstrapEnd}
  exit
}
CLUSTER_E2E_END
}

write_unit() {
  cat >${unitFile} <<CLUSTER_E2E_END
[Unit]
Description=Serves the installer to the nodes of the cluster
Wants=network-online.target
After=network-online.target

[Service]
ExecStart=$python ${installPaths.bootstrapServer} ${installPaths.bootstrapSettings}
ExecStopPost=/bin/sh ${installPaths.bootstrapEnd}
Restart=on-failure
RestartSec=1
StartLimitInterval=0
LimitNOFILE=8192
LimitCORE=0
CapabilityBoundingSet=CAP_CHOWN CAP_FOWNER CAP_DAC_OVERRIDE CAP_SETUID CAP_SETGID CAP_SYS_CHROOT
PrivateTmp=yes
NoNewPrivileges=yes

[Install]
WantedBy=multi-user.target
CLUSTER_E2E_END
  chmod 644 ${unitFile}
}
${unitFunctions}`;

/** Serves genconf's output to the cluster's own nodes until all of them are done. */
export const serve = (server: BootstrapServer): Phase => ({
  title: "Serve",
  run: async ({ connection, reference }, signal) => {
    await runRemoteScript(
      connection,
      {
        name: "e2e-serve",
        text: serveScript(server),
        arguments: [],
        // On an emulated machine on a busy computer, Python takes a minute to start.
        limitMs: 180_000,
        task: "starting the bootstrap server",
        failure: `${reference}: cannot start the bootstrap server`,
        errorId: "install-failed",
      },
      signal,
    );
  },
});

const firstPort = 18_080;

/** Returns a port that neither the platform nor the installer of any layout uses. It must be known before genconf reveals the layout. */
export function bootstrapPort(layouts: readonly Layout[]): number {
  const taken = new Set(layouts.flatMap((layout) => [...layout.masterPorts, ...layout.publicPorts]));
  let port = firstPort;
  while (taken.has(port)) port += 1;
  return port;
}
