/** Faults of the nodes' systems: of what their shells print, of their disks, of what the artifact does on them. */
import type { Expected, Fault } from "../fault.ts";
import type { LoginShell } from "../../local-cloud/machines/exec.ts";
import type { RootShellMoment } from "../../local-cloud/machines/root-shell.ts";
import type { ScriptedAnswer } from "../../local-cloud/machines/scripted-answers.ts";
import type { CloudWorld } from "../worlds/cloud-world.ts";
import { answering, created, failed, struck } from "./cloud-injections.ts";

type CloudFault = Fault<CloudWorld>;

const answer = (
  name: string,
  answers: readonly ScriptedAnswer[],
  expected: Expected,
): CloudFault => ({
  name,
  place: "machine",
  strike: answering(...answers),
  expected,
});

const shell = (name: string, loginShell: LoginShell, expected: Expected): CloudFault => ({
  name,
  place: "machine",
  strike: async (world) => {
    world.shell.current = () => loginShell;
    return struck(() => {
      world.shell.current = () => ({});
    });
  },
  expected,
});

/** A root shell of a node ends at a moment of its first line with this text. */
const rootShell = (moment: RootShellMoment, text: string): CloudFault => ({
  name: `a root shell that ends when it ${moment}: ${text}`,
  place: "machine",
  strike: async ({ rootShells }) => {
    const met = { count: 0 };
    rootShells.breaks = (now, line) => {
      if (now !== moment || !line.includes(text)) return false;
      met.count += 1;
      return met.count === 1;
    };
    return {
      hasStruck: () => met.count > 0,
      [Symbol.asyncDispose]: async () => {
        rootShells.breaks = undefined;
      },
    };
  },
  expected: created,
});

const moments = ["waits", "has a line", "has begun", "has ended"] as const;
const rootShells = ["e2e-prepare", "artifact.sh --genconf"].flatMap((text) =>
  moments.map((moment) => rootShell(moment, text)),
);

const shells: readonly CloudFault[] = [
  shell("a .bashrc that prints a line", { before: { stdout: "Welcome to this node\n" } }, created),
  shell("a .bashrc that clears the screen", { before: { stdout: "\u001B[H\u001B[2J" } }, created),
  shell(
    "a .bashrc that prints JSON",
    { before: { stdout: '{"variant":"oss","version":"0"}\n' } },
    created,
  ),
  shell(
    "a .bashrc that prints 100 kB",
    { before: { stdout: `${"noise ".repeat(10)}\n`.repeat(1_700) } },
    created,
  ),
  shell(
    "a .bashrc that complains",
    { before: { stderr: "bash: warning: setlocale: LC_ALL: cannot change locale\n" } },
    created,
  ),
  shell(
    "csh as the login shell",
    { instead: { status: 1, stdout: "", stderr: "Illegal variable name.\n" } },
    failed("remote-command-failed", /login shell/),
  ),
  shell(
    "fish as the login shell",
    { instead: { status: 127, stdout: "", stderr: "fish: Unsupported use of '='\n" } },
    failed("remote-command-failed", /login shell/),
  ),
  shell(
    "a ForceCommand that does nothing",
    { instead: { status: 0, stdout: "This service allows sftp connections only.\n", stderr: "" } },
    failed("remote-command-failed", /login shell/),
  ),
  shell(
    "an account that is not available",
    { instead: { status: 1, stdout: "This account is currently not available.\n", stderr: "" } },
    failed("remote-command-failed", /login shell|not available/),
  ),
];

const version = "artifact\\.sh --version";
const genconf = "artifact\\.sh --genconf";

const artifactOnNodes: readonly CloudFault[] = [
  answer(
    "--version prints no JSON",
    [{ pattern: version, stdout: "Usage: artifact.sh\n" }],
    failed("artifact-invalid", "--version"),
  ),
  answer(
    "--version fails",
    [{ pattern: version, status: 2, stderr: "gzip: stdin: unexpected end of file\n" }],
    failed("artifact-invalid", "unexpected end of file"),
  ),
  answer(
    "--version is killed",
    [{ pattern: version, status: 137 }],
    failed("artifact-invalid", /137|killed|memory/),
  ),
  answer(
    "--version prints nothing",
    [{ pattern: version, stdout: "" }],
    failed("artifact-invalid", "--version"),
  ),
  answer(
    "--version names the other variant",
    [{ pattern: version, stdout: '{"variant":"oss","version":"1"}\n' }],
    failed("variant-mismatch", "oss"),
  ),
  answer(
    "genconf refuses a key",
    [{ pattern: genconf, status: 1, stdout: "resolvers: must be a list\n" }],
    failed("configuration-refused", "resolvers: must be a list"),
  ),
  answer(
    "genconf fails and says nothing",
    [{ pattern: genconf, status: 1 }],
    failed("configuration-refused", "status 1"),
  ),
  answer(
    "genconf fills the disk",
    [{ pattern: genconf, status: 91, stdout: "OSError: [Errno 28] No space left on device\n" }],
    failed("install-failed", "disk is full"),
  ),
  answer(
    "genconf leaves nothing to install",
    [{ pattern: genconf, stdout: "\n" }],
    failed("artifact-invalid", "genconf"),
  ),
  {
    name: "genconf prints the secrets",
    place: "machine",
    strike: async (world) =>
      answering({
        pattern: genconf,
        status: 1,
        stdout: `bad: ${world.secrets.slice(0, 3).join(" ")}\n`,
      })(world),
    expected: failed("configuration-refused", "***"),
  },
  answer(
    "genconf prints control characters",
    [{ pattern: genconf, status: 1, stdout: "bad: \u001B[2J\u202E\u0007 value\n" }],
    { ...failed("configuration-refused", "value"), hides: ["\u202E", "\u0007", "\u001B[2J"] },
  ),
];

const systems: readonly CloudFault[] = [
  answer(
    "the first boot fails",
    [
      {
        pattern: "e2e-first-boot",
        status: 4,
        stdout: "status: error\nFailed to run module bootcmd\n",
      },
    ],
    failed("machine-failed", "Failed to run module bootcmd"),
  ),
  answer(
    "the host key cannot be replaced",
    [
      {
        pattern: "e2e-first-contact",
        status: 1,
        stderr: "sh: 1: cannot create /etc/ssh/x: Read-only file system\n",
      },
    ],
    failed("remote-command-failed", "Read-only file system"),
  ),
  answer(
    "preparing fails",
    [
      {
        pattern: "e2e-prepare",
        status: 1,
        stderr: "failed: no package provides ipset\n",
        readsStdin: true,
      },
    ],
    failed("install-failed", "no package provides ipset"),
  ),
  answer(
    "curl is missing after its installation",
    [
      {
        pattern: "e2e-prepare",
        status: 1,
        stderr: "failed: curl is still missing although its package, curl, was installed\n",
        readsStdin: true,
      },
    ],
    failed("install-failed", "curl is still missing although its package"),
  ),
  answer(
    "preparing is killed",
    [{ pattern: "e2e-prepare", status: 137, readsStdin: true }],
    failed("install-failed", /137|killed/),
  ),
  answer(
    "sudo asks for a password",
    [{ pattern: "sudo -n", status: 1, stderr: "sudo: a password is required\n" }],
    failed("remote-command-failed", "a password is required"),
  ),
  answer(
    "the disk is full at the artifact's folder",
    [
      {
        pattern: "e2e-artifact-folder",
        status: 1,
        stderr: "mkdir: cannot create directory: No space left on device\n",
        readsStdin: true,
      },
    ],
    failed("remote-command-failed", "No space left on device"),
  ),
  answer(
    "the disk is full at the artifact",
    [
      {
        pattern: "e2e-receive",
        status: 1,
        stderr: "cat: write error: No space left on device\n",
        readsStdin: true,
      },
    ],
    failed("transfer-failed", "No space left on device"),
  ),
  answer(
    "the bootstrap port is taken",
    [
      {
        pattern: "e2e-serve",
        status: 1,
        stderr: "failed: port 18080 of 172.31.0.4 is taken by another program\n",
        readsStdin: true,
      },
    ],
    failed("install-failed", "port 18080 of 172.31.0.4 is taken by another program"),
  ),
  answer(
    "the installation cannot be started",
    [
      {
        pattern: "e2e-start-install",
        status: 1,
        stderr: "failed: systemd-run: Failed to connect to bus\n",
        readsStdin: true,
      },
    ],
    failed("install-failed", "Failed to connect to bus"),
  ),
  answer(
    "the resolvers cannot be read",
    [
      {
        pattern: "e2e-resolvers",
        status: 1,
        stderr: "sed: can't read /etc/resolv.conf\n",
        readsStdin: true,
      },
    ],
    failed("remote-command-failed", "resolv.conf"),
  ),
];

export const nodeFaults: readonly CloudFault[] = [
  ...shells,
  ...rootShells,
  ...artifactOnNodes,
  ...systems,
];
