/** Faults of nodes that meet programs which use the library. */
import { join } from "node:path";
import type { LoginShell } from "../../local-cloud/machines/exec.ts";
import type { Ended } from "../../e2e/support/executable.ts";
import type { Fault } from "../fault.ts";
import type { CloudWorld } from "../worlds/cloud-world.ts";
import { usualAnswers } from "../worlds/cloud-world.ts";

type CloudFault = Fault<CloudWorld>;

/** Long enough for a command to be ended, short enough to show that nothing waits for its own end. */
const limitMs = 60_000;

const library =
  (operation: "run" | "install") =>
  async ({ folder, environment }: CloudWorld): Promise<Ended> => {
    const program = join(import.meta.dir, "../worlds/library-program.ts");
    const child = Bun.spawn([process.execPath, program, operation], {
      cwd: folder,
      env: { PATH: process.env["PATH"], ...environment },
      stdio: ["ignore", "pipe", "pipe"],
      timeout: limitMs,
    });
    const [stdout, stderr] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
    ]);
    await child.exited;
    const signal = child.signalCode === null ? undefined : String(child.signalCode);
    return { status: child.exitCode ?? undefined, signal, stdout, stderr };
  };

/** One session per connection, and a command that goes on. It can be ended only over a second connection. */
const oneSession: CloudFault = {
  name: "MaxSessions 1, and the library's command exceeds its time limit",
  place: "machine",
  seconds: 8,
  needsCluster: true,
  strike: async ({ cloud, sessions }) => {
    cloud.answers.replace([{ pattern: "sleep.*600", delayMs: 600_000 }, ...usualAnswers]);
    sessions.most = 1;
    const before = cloud.answers.answered.length;
    return {
      hasStruck: () =>
        sessions.refused > 0 &&
        cloud.answers.answered
          .slice(before)
          .some(({ command }) => command.includes('kill -TERM -"$g"')),
      [Symbol.asyncDispose]: async () => {
        sessions.most = Number.POSITIVE_INFINITY;
        cloud.answers.replace(usualAnswers);
      },
    };
  },
  act: library("run"),
  expected: {
    status: 1,
    id: "deadline-passed",
    says: ["did not finish within 1 s"],
    keepsCluster: true,
    withinMs: 45_000,
  },
};

const oneSessionEach: CloudFault = {
  name: "MaxSessions 1 on every node",
  place: "machine",
  strike: async ({ sessions }) => {
    sessions.most = 1;
    return {
      // Whether one is refused depends on how commands meet: most use the login's one root shell.
      hasStruck: () => sessions.limited > 0,
      [Symbol.asyncDispose]: async () => {
        sessions.most = Number.POSITIVE_INFINITY;
      },
    };
  },
  expected: { status: 0, says: [/^faulty$/m], keepsCluster: true },
};

const shells: readonly { readonly name: string; readonly instead: LoginShell["instead"] & {} }[] = [
  {
    name: "csh as the login shell",
    instead: { status: 1, stdout: "", stderr: "Illegal variable name.\n" },
  },
  {
    name: "fish as the login shell",
    instead: { status: 127, stdout: "", stderr: "fish: Unsupported use of '='\n" },
  },
  {
    name: "a ForceCommand that does nothing",
    instead: { status: 0, stdout: "This service allows sftp connections only.\n", stderr: "" },
  },
];

/** `from`: the command after which the shell is another, so that the next one meets it. */
const inShell = (
  { name, instead }: (typeof shells)[number],
  {
    operation,
    title,
    from,
  }: { readonly operation: "run" | "install"; readonly title: string; readonly from: string },
): CloudFault => ({
  name: `${name}, then the library's ${title}`,
  place: "machine",
  seconds: 8,
  needsCluster: true,
  strike: async ({ cloud, shell }) => {
    const before = cloud.answers.answered.length;
    const met = { count: 0 };
    const isDue = (): boolean =>
      from === "" ||
      cloud.answers.answered.slice(before).some(({ command }) => command.includes(from));
    shell.current = () => {
      if (!isDue()) return {};
      met.count += 1;
      return { instead };
    };
    return {
      hasStruck: () => met.count > 0,
      [Symbol.asyncDispose]: async () => {
        shell.current = () => ({});
      },
    };
  },
  act: library(operation),
  expected: {
    status: 1,
    id: "remote-command-failed",
    says: [/login shell/],
    hides: [/^done$/m],
    keepsCluster: true,
    withinMs: 45_000,
  },
});

export const libraryFaults: readonly CloudFault[] = [
  oneSession,
  oneSessionEach,
  ...shells.map((shell) => inShell(shell, { operation: "run", title: "run", from: "" })),
  ...shells.map((shell) =>
    inShell(shell, { operation: "install", title: "upload", from: "e2e-artifact-folder" }),
  ),
];
