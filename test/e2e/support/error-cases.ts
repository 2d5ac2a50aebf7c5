/**
 * Shared by the tests of errors: a cloud with one cluster, ways to make it fail, and what must be true of every
 * failure.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { readFile, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Ended } from "./executable.ts";
import { executablePath } from "./executable.ts";
import { longEnough } from "../../support/long-enough.ts";
import { startTestCloud } from "./test-cloud.ts";
import type { Inspected } from "./test-backend.ts";
import type { TestCloud } from "./test-cloud.ts";

export interface ErrorCase {
  readonly id: string;
  /** The exit code. */
  readonly status: number;
  readonly words: readonly string[];
  /** Adds a time limit, in which this computer comes as far as `says` says. */
  readonly isLimited?: true;
  /** Texts that must stand in the message: what happened, to which object, why, what to do now. */
  readonly says: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  /** What goes wrong first; undone when it is over. */
  readonly prepare?: (bench: ErrorBench) => Promise<AsyncDisposable>;
  /** Where stdout leads, instead of here. */
  readonly stdout?: "/dev/full";
  /** Whether the message names a log, which must be there. */
  readonly hasLog?: true;
}

interface Answer {
  readonly pattern: string;
  readonly status?: number;
  readonly stdout?: string;
  readonly stderr?: string;
  readonly readsStdin?: true;
  readonly delayMs?: number;
  readonly replaceHostKey?: true;
}

/** So the machines answer what a creation asks of them; the first pattern that matches counts. */
const usual: readonly Answer[] = [
  { pattern: "e2e-first-contact", replaceHostKey: true },
  { pattern: "artifact\\.sh --version", stdout: '{"variant":"enterprise","version":"1"}\n' },
  { pattern: "artifact\\.sh --genconf", stdout: "cluster_install.sh\n" },
  { pattern: "resolv\\.conf", stdout: "nameserver 10.0.0.2\n" },
  { pattern: "", readsStdin: true },
];

/** The words that create an enterprise cluster of one master. */
export const createWords = (id: string, ...more: readonly string[]): readonly string[] => [
  ..."create --variant enterprise --masters 1 --agents 0 --public-agents 0 --linux-distribution debian-12".split(
    " ",
  ),
  "-c",
  id,
  "artifact.sh",
  ...more,
];

export interface ErrorBench extends AsyncDisposable {
  readonly cloud: TestCloud;
  /** How the creation of the cluster `base` ended, with JSON under -vvv. */
  readonly created: Ended;
  /** The cluster `base`: enterprise, one master. */
  readonly base: Inspected;
}

/**
 * The cloud's folder, where commands are run, holds artifacts (`artifact.sh`, `open.sh`), `page.html` and a `checkout`.
 */
async function openErrorBench(): Promise<ErrorBench> {
  const cloud = await startTestCloud("in-process");
  const { folder } = cloud;
  await writeFile(join(folder, "artifact.sh"), "#!/bin/bash\n# variant: enterprise\n");
  await writeFile(join(folder, "open.sh"), "#!/bin/bash\n# variant: oss\n");
  await writeFile(join(folder, "page.html"), "<!doctype html><title>Log in</title>");
  await Bun.write(join(folder, "checkout/packages/integration-test/extra/test_one.py"), "x = 1\n");
  await cloud.control("answers", usual);
  const created = await cloud.run(createWords("base", "--output", "json", "-vvv"), { cwd: folder });
  expect(created).toMatchObject({ status: 0 });
  return {
    cloud,
    created,
    base: await cloud.inspect("base"),
    [Symbol.asyncDispose]: () => cloud[Symbol.asyncDispose](),
  };
}

const undoable = (undo: () => Promise<unknown>): AsyncDisposable => ({
  [Symbol.asyncDispose]: async () => {
    await undo();
  },
});

type Preparation = (bench: ErrorBench) => Promise<AsyncDisposable>;

/** The machines answer so, before they answer as usual. */
export const answering =
  (...answers: readonly Answer[]): Preparation =>
  async ({ cloud }) => {
    await cloud.control("answers", [...answers, ...usual]);
    return undoable(() => cloud.control("answers", usual));
  };

export const behaving =
  (
    changes: Readonly<Record<string, unknown>>,
    former: Readonly<Record<string, unknown>>,
  ): Preparation =>
  async ({ cloud }) => {
    await cloud.control("behaviour", changes);
    return undoable(() => cloud.control("behaviour", former));
  };

/** A fault that strikes once. */
export const striking =
  (fault: Readonly<Record<string, unknown>>): Preparation =>
  async ({ cloud }) => {
    await cloud.control("faults", fault);
    return undoable(() => Promise.resolve());
  };

/** A file of the cluster's folder on this machine with another text, or, for undefined, without the file. */
export const withFile =
  (name: string, change: (text: string) => Promise<string | undefined>): Preparation =>
  async ({ base }) => {
    const path = join(dirname(base.sshKey.path), name);
    const former = await readFile(path, "utf8");
    const text = await change(former);
    await (text === undefined ? rm(path) : writeFile(path, text));
    return undoable(() => writeFile(path, former, { mode: 0o600 }));
  };

/** Tests that share one bench, and leave no machine on it but the base cluster's. */
export function describeOnBench(title: string, define: (bench: () => ErrorBench) => void): void {
  const state: { bench?: ErrorBench } = {};
  const bench = (): ErrorBench => state.bench!;
  if (!canServeMachines)
    console.warn(`Skipped: ${title}. The machines answer on port 22, which this user may not use.`);
  describe.skipIf(!canServeMachines)(title, () => {
    beforeAll(async () => {
      state.bench = await openErrorBench();
    });
    afterAll(async () => {
      await state.bench?.[Symbol.asyncDispose]();
    });
    define(bench);
    test("nothing is left but the base cluster's machine and group", async () => {
      expect(await bench().cloud.machines()).toHaveLength(1);
      expect(await bench().cloud.control("groups")).toHaveLength(1);
    });
  });
}

/** Makes one test of each case as text, and one as JSON where the command has it. */
export function testErrors(title: string, cases: readonly ErrorCase[]): void {
  const named = (each: ErrorCase) => [each.id, shownWords(each), each] as const;
  describeOnBench(title, (bench) => {
    test.each(cases.map(named))("%s: %s", async (_id, _words, given) => checkText(given, bench()));
    test.each(cases.filter(hasJson).map(named))(
      "%s as JSON, under -vvv: %s",
      async (_id, _words, given) => checkJson(given, bench()),
    );
  });
}

/** Linux keeps ports below this one for root. */
function lowestPort(): number {
  try {
    return Number(readFileSync("/proc/sys/net/ipv4/ip_unprivileged_port_start", "utf8"));
  } catch {
    return 1024;
  }
}

const canServeMachines = process.getuid?.() === 0 || lowestPort() <= 22;

const shownWords = ({ words }: ErrorCase): string =>
  words.length > 8 ? `${words[0]} …` : words.join(" ");

async function checkText(given: ErrorCase, bench: ErrorBench): Promise<void> {
  await using _trouble = await given.prepare?.(bench);
  const ended = await end(given, [], bench);
  expect(ended.stderr).toEndWith(`\n[${given.id}]\n`);
  expect({ status: ended.status, stdout: ended.stdout }).toEqual({
    status: given.status,
    stdout: "",
  });
  const message = ended.stderr.slice(ended.stderr.indexOf("Error: "));
  for (const text of given.says) expect(message).toContain(text);
  // No stack below -vv, and the error is told once.
  expect(message).not.toMatch(/\n\s+at /);
  expect(ended.stderr.split("Error: ")).toHaveLength(2);
  const log = /^Log: (.+)$/m.exec(message)?.[1];
  expect(log !== undefined).toBe(given.hasLog === true);
  if (log === undefined) return;
  expect(await readFile(log, "utf8")).toContain(`[${given.id}]`);
  expect((await stat(log)).mode & 0o777).toBe(0o600);
}

const withJson: readonly string[] = ["create", "list", "inspect", "wait", "sync", "doctor", "logs"];
const hasJson = ({ words, stdout }: ErrorCase): boolean =>
  stdout === undefined && withJson.includes(words[0] ?? "");

async function checkJson(given: ErrorCase, bench: ErrorBench): Promise<void> {
  await using _trouble = await given.prepare?.(bench);
  const ended = await end(given, ["--output", "json", "-vvv"], bench);
  const { schemaVersion, error } = JSON.parse(ended.stdout) as {
    readonly schemaVersion: number;
    readonly error: Readonly<Record<string, string | undefined>>;
  };
  const { id, status } = given;
  expect({ status: ended.status, schemaVersion, id: error["id"] }).toEqual({
    status,
    schemaVersion: 1,
    id,
  });
  expect(ended.stderr).toContain(`[${id}]\n`);
  const told = `\n${error["message"]}\n${error["hint"]}`;
  for (const text of given.says) expect(told).toContain(text);
  expect(error["log"] !== undefined).toBe(given.hasLog === true);
  expect(ended.stdout + ended.stderr).not.toContain(
    bench.cloud.environment["CLOUD_SECRET_ACCESS_KEY"]!,
  );
}

async function end(given: ErrorCase, more: readonly string[], bench: ErrorBench): Promise<Ended> {
  if (given.isLimited !== true) return endOnce(given, more, bench);
  const last: { ended?: Ended } = {};
  await longEnough(1_000, async (limitMs) => {
    const ended = await endOnce(given, [...more, "--timeout", `${limitMs / 1_000}s`], bench);
    last.ended = ended;
    return given.says.every((text) => `${ended.stdout}${ended.stderr}`.includes(text));
  });
  return last.ended!;
}

async function endOnce(
  { words, environment = {}, stdout }: ErrorCase,
  more: readonly string[],
  { cloud }: ErrorBench,
): Promise<Ended> {
  const all = [...words.slice(0, 1), ...more, ...words.slice(1)];
  if (stdout === undefined) return cloud.run(all, { cwd: cloud.folder, environment });
  const child = Bun.spawn(
    ["sh", "-c", `exec "$0" "$@" >${stdout}`, executablePath("cluster-cloud"), ...all],
    {
      env: { PATH: process.env["PATH"], ...cloud.environment },
      stderr: "pipe",
    },
  );
  const stderr = await new Response(child.stderr).text();
  return { status: await child.exited, signal: undefined, stdout: "", stderr };
}
