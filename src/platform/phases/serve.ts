import { installPaths, installUnits } from "../install-paths.ts";
import type { Layout } from "../layout.ts";
import { bootstrapServer } from "./bootstrap-server.ts";
import type { Phase } from "./phase.ts";
import { runRemoteScript } from "./remote-script.ts";

const unitFile = `/etc/systemd/system/${installUnits.bootstrap}.service`;

/**
 * Arguments: address, port, the install script's name. The address may come up after the unit at boot: hence the restarts without a limit,
 * in the spelling that systemd 219 knows.
 */
export const serveScript = `
main() {
  python=$(find_python)
  [ -n "$python" ] || fail 'there is no Python on this machine'
  write_server
  write_unit "$1" "$2"
  systemctl daemon-reload
  systemctl enable ${installUnits.bootstrap}
  systemctl restart ${installUnits.bootstrap}
  tries=0
  until curl -fsS --noproxy '*' --max-time 10 -o /dev/null "http://$1:$2/$3" 2>/dev/null; do
    tries=$((tries + 1))
    [ "$tries" -lt 50 ] || fail "it does not answer at $1:$2: $(journalctl -q -n 1 -o cat -u ${installUnits.bootstrap})"
    sleep 0.2
  done
}

# /usr/libexec/platform-python: RHEL 8 and later; python2.7: CentOS 7.
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

write_unit() {
  cat >${unitFile} <<CLUSTER_E2E_END
[Unit]
Description=Serves the installer to the nodes of the cluster
Wants=network-online.target
After=network-online.target

[Service]
ExecStart=$python ${installPaths.bootstrapServer} ${installPaths.serve} $1 $2
Restart=always
RestartSec=1
StartLimitInterval=0
PrivateTmp=yes
NoNewPrivileges=yes

[Install]
WantedBy=multi-user.target
CLUSTER_E2E_END
  chmod 644 ${unitFile}
}
`;

/** Serves what genconf wrote, inside the cluster only: on the first master's private address. */
export const serve = (layout: Layout, address: string, port: number): Phase => ({
  title: "Serve",
  run: async ({ connection, reference }, signal) => {
    await runRemoteScript(
      connection,
      {
        name: "e2e-serve",
        text: serveScript,
        arguments: [address, String(port), layout.installScript],
        limitMs: 60_000,
        task: "starting the bootstrap server",
        failure: `${reference}: the bootstrap server could not be started`,
        errorId: "install-failed",
      },
      signal,
    );
  },
});

const firstPort = 18_080;

/** A port that neither platform nor installer of any layout uses; it must be known before genconf tells the layout. */
export function bootstrapPort(layouts: readonly Layout[]): number {
  const taken = new Set(layouts.flatMap((layout) => [...layout.masterPorts, ...layout.publicPorts]));
  let port = firstPort;
  while (taken.has(port)) port += 1;
  return port;
}
