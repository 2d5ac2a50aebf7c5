/**
 * Why an engine on another computer can't be reached, from what its program prints. All these texts
 * were seen, with Docker 20.10 and 28.2, Podman 4.3 and OpenSSH 9.2, except for Podman's unknown
 * host keys.
 */
import type { EngineKind } from "./engine-kind.ts";

type Row = readonly [pattern: RegExp, what: (title: string) => string, hint: string];

/** The end of an instruction. */
export const byHand =
  'make sure that ssh USER@HOST "docker version" works without a question for the user who runs this program.';
const files = "ca.pem, cert.pem and key.pem";
const folder = "the folder that DOCKER_CERT_PATH or the context names";

const sshRows: readonly Row[] = [
  [
    /host key verification failed|knownhosts: |no \S{1,40} host key is known/,
    (title) => `SSH does not know the host key of ${title}'s computer, or knows another one`,
    "Log in there once by hand, compare the key's fingerprint, and accept it (ssh USER@HOST). If the computer has a new key, remove the old one first (ssh-keygen -R HOST).",
  ],
  [
    /permission denied \(|unable to authenticate|too many authentication failures/,
    (title) => `SSH refuses the login to ${title}'s computer`,
    `Load the key with ssh-add, or name it in ~/.ssh/config (IdentityFile), then ${byHand}`,
  ],
  [
    /exit status 127|(?:command |: )not found/,
    (title) => `The program of ${title} is missing on the computer behind SSH`,
    `Install it there, on the PATH of logins without a terminal, then ${byHand}`,
  ],
  [
    /controlpath|unix_listener: /,
    (title) => `SSH cannot share logins to ${title}'s computer`,
    "In your ~/.ssh/config, give ControlPath a short path in a folder that exists, such as ~/.ssh/%C, or set ControlMaster to no.",
  ],
  [
    /kex_exchange_identification|connection (?:closed|reset) by/,
    (title) => `SSH ends the connection to ${title}'s computer`,
    "Its sshd may refuse so many logins at once: raise MaxStartups there, or let ControlMaster in your ~/.ssh/config reuse one login.",
  ],
  [
    /exit status 255|^ssh: /,
    (title) => `SSH does not reach ${title}'s computer`,
    `Check the address and that sshd runs there, then ${byHand}`,
  ],
];

const engineRows: readonly Row[] = [
  [
    /^/,
    (title) => `${title} does not answer on the computer behind SSH`,
    `Start it there, and let that user use it: for Docker, sudo systemctl start docker and the group docker; for Podman, systemctl start podman.socket. Then ${byHand}`,
  ],
];

const tcpRows: readonly Row[] = [
  [
    /^/,
    (title) => `${title} does not answer at its address`,
    "Start it on that computer, let it listen at this address, and let this computer through its firewall. The address is that of DOCKER_HOST or of the context that docker context show names.",
  ],
];

const tlsRows: readonly Row[] = [
  [
    /has expired or is not yet valid/,
    (title) =>
      `The certificate of ${title}'s daemon, or its authority's, is not valid at this time`,
    "Renew it on the daemon's computer, or correct this computer's clock.",
  ],
  [
    /signed by unknown authority/,
    (title) => `The authority in ca.pem did not sign the certificate of ${title}'s daemon`,
    `Copy the daemon's own ca.pem to ${folder}.`,
  ],
  [
    /cannot validate certificate for|certificate is (?:not )?valid for/,
    (title) => `The certificate of ${title}'s daemon is for another name or address`,
    "Use a name from its subjectAltName in DOCKER_HOST or the context, or give the daemon a certificate with this one.",
  ],
  [
    /client authentication|remote error: tls: /,
    (title) => `${title}'s daemon refuses this computer's certificate`,
    `Put a cert.pem and key.pem that the daemon's authority signed into ${folder}. Who signed yours, and until when it is valid, shows "openssl x509 -noout -issuer -enddate -in cert.pem".`,
  ],
  [
    /client sent an http request to an https server/,
    (title) => `${title}'s daemon wants TLS`,
    `Set DOCKER_TLS_VERIFY=1, and DOCKER_CERT_PATH to a folder with ${files}, or use a context that has them.`,
  ],
  [
    /server gave http response to https client/,
    (title) => `${title}'s daemon does not use TLS`,
    "Unset DOCKER_TLS_VERIFY and DOCKER_TLS, or use the port of the daemon that has TLS, usually 2376.",
  ],
  [
    /x509: |tls: /,
    (title) => `${title} and its program do not agree on certificates`,
    `Check ${files} in ${folder}.`,
  ],
];

const addressRow: Row = [
  /bind address|parse |unsupported protocol|invalid docker_host|ssh url|ssh host connection|protocol not available|invalid port|no host in request url|lookup (?:unix|tcp|ssh|fd)[ :]/,
  (title) => `The address of ${title} cannot be understood`,
  "Use an address such as unix:///var/run/docker.sock, tcp://HOST:2376 or ssh://USER@HOST.",
];

const podmanAddressRow: Row = [
  /^/,
  addressRow[1],
  "Use an address such as unix:///run/podman/podman.sock or ssh://USER@HOST/run/podman/podman.sock.",
];

const settingRows: readonly Row[] = [
  [
    /\.pem|tls info: |x509 key pair/,
    (title) => `A certificate or key for ${title} cannot be used`,
    `Put ${files} into ${folder}. They belong together, and this user must be allowed to read them.`,
  ],
  [
    /context not found|does not exist/,
    (title) => `${title} has no context of that name`,
    "Run docker context ls to see those that exist.",
  ],
  addressRow,
  [
    /no such host/,
    (title) => `The name of ${title}'s computer has no address`,
    "Check the name in DOCKER_HOST or the context.",
  ],
];

/** How the lines begin that are the program's own. What a node, a registry or a build says is never one of them. */
const sources: readonly (readonly [start: RegExp, rows: readonly Row[]])[] = [
  // Docker runs ssh, whose own lines follow.
  [/^error during connect: .{0,300}: command \[ssh /, sshRows],
  [/^cannot connect to the docker daemon at http:\/\/docker\.example\.com/, engineRows],
  [/^error: (?:unable to connect to podman socket: )?(?:failed to connect: )?ssh: /, sshRows],
  [/^error: unable to connect to podman socket: .{0,300}: ssh: rejected/, engineRows],
  [/^error during connect: /, [...tlsRows, ...settingRows.slice(-2)]],
  // Docker 29
  [/^failed to connect to the docker api at /, settingRows.slice(-2)],
  [
    // With npipe:// and fd://, the client of Docker 20.10 crashes.
    /^(?:cannot connect to the docker daemon at tcp:.{0,300}\.sock\b|panic: runtime error: .{0,100}nil pointer dereference)/,
    [[/^/, addressRow[1], addressRow[2]]],
  ],
  [/^(?:cannot connect to the docker daemon|failed to connect to the docker api) at tcp:/, tcpRows],
  [
    /^error: (?:unable to create connection\. ".{0,300} supported schema|value of container_host is not )/,
    [podmanAddressRow],
  ],
  [/^the server probably has client authentication/, tlsRows],
  [/^error response from daemon: client sent an http request to an https server/, tlsRows],
  [
    /^(?:failed to initialize: )?(?:unable to resolve docker endpoint|failed to retrieve context tls info|ssh host connection is not valid|parse "|protocol not available)/,
    settingRows,
  ],
];

/** Undefined for every other failure. */
export function connectionFailure({ title }: Pick<EngineKind, "title">, stderr: string) {
  const lines = stderr.split("\n").map((line) => line.trim());
  for (const [start, rows] of sources) {
    const first = lines.findIndex((line) => start.test(line.toLowerCase()));
    if (first === -1) continue;
    const all = lines.slice(first).filter((line) => line !== "");
    const row = rows.find(([pattern]) => pattern.test(all.join("\n").toLowerCase()));
    if (row === undefined) continue;
    return { what: row[1](title), hint: row[2], reason: reasonIn(all) };
  }
  return undefined;
}

/** What stands before the reason: how ssh was called, or what was asked of the daemon. */
const introductions = [
  "stderr=",
  '": ',
  "docker endpoint: ",
  "tls info: ",
  "daemon: ",
  "initialize: ",
  "Error: ",
];

/** ssh's own last line, or the engine's only one. */
function reasonIn(lines: readonly string[]): string {
  const [first = ""] = lines;
  const line = first.includes("stderr=") ? (lines.at(-1) ?? first) : first;
  const found = introductions.find((each) => line.includes(each));
  return found === undefined ? line : line.slice(line.indexOf(found) + found.length);
}
