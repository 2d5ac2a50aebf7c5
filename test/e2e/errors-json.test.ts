/**
 * With `--output json`, stdout contains exactly one object, whatever -vvv prints on stderr and however the command
 * ends. errors.test.ts checks the JSON of every error.
 */
import { expect, test } from "bun:test";
import { answering, createWords, describeOnBench } from "./support/error-cases.ts";
import type { ErrorBench } from "./support/error-cases.ts";

interface JsonCase {
  readonly command: string;
  readonly words: readonly string[];
  readonly status: number;
  /** The object's other keys. */
  readonly keys: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly prepare?: (bench: ErrorBench) => Promise<AsyncDisposable>;
}

const ready = {
  pattern: "e2e-readiness",
  stdout: "layout=cluster\nstatus=exit 0\ncheck.status=0\n",
  readsStdin: true,
} as const;
const installed = {
  pattern: "e2e-sync-state",
  stdout: '# layout cluster\n# version\n{"variant":"enterprise","version":"1"}\n# tests\n',
} as const;
const alone = { AWS_EC2_METADATA_DISABLED: "true" };
const wrongSecret = { ...alone, CLOUD_SECRET_ACCESS_KEY: "wrong" };

const cases: readonly JsonCase[] = [
  {
    command: "create --dry-run",
    words: createWords("other", "--dry-run"),
    status: 0,
    keys: ["plan"],
  },
  {
    command: "create --dry-run",
    words: createWords("base", "--dry-run"),
    status: 1,
    keys: ["error"],
  },
  { command: "create", words: createWords("base"), status: 1, keys: ["error"] },
  { command: "list", words: ["list"], status: 0, keys: ["clusters"] },
  { command: "list --quiet", words: ["list", "--quiet"], status: 0, keys: ["clusters"] },
  {
    command: "list --all-regions",
    words: ["list", "--all-regions"],
    status: 0,
    keys: ["clusters", "unreachable"],
  },
  { command: "list", words: ["list"], environment: wrongSecret, status: 5, keys: ["error"] },
  { command: "inspect", words: ["inspect", "-c", "base"], status: 0, keys: ["cluster"] },
  { command: "inspect", words: ["inspect", "-c", "nobody"], status: 3, keys: ["error"] },
  { command: "doctor", words: ["doctor"], environment: alone, status: 0, keys: ["checks"] },
  { command: "doctor", words: ["doctor"], environment: wrongSecret, status: 1, keys: ["checks"] },
  {
    command: "wait",
    words: ["wait", "-c", "base", "--skip-http-checks"],
    prepare: answering(ready),
    status: 0,
    keys: ["cluster", "ready", "seconds", "ageSeconds"],
  },
  { command: "wait", words: ["wait", "-c", "base", "--timeout", "1s"], status: 4, keys: ["error"] },
  {
    command: "sync",
    words: ["sync", "-c", "base", "checkout"],
    prepare: answering(installed),
    status: 0,
    keys: ["masters", "nodes", "seconds"],
  },
  { command: "sync", words: ["sync", "-c", "base", "none"], status: 2, keys: ["error"] },
  { command: "logs", words: ["logs", "-c", "base"], status: 0, keys: ["folder", "files"] },
  { command: "logs", words: ["logs", "-c", "nobody"], status: 3, keys: ["error"] },
];

describeOnBench("JSON under -vvv", (bench) => {
  // Shows R89.
  test.each(cases.map((each) => [each.command, each.status, each] as const))(
    "%s ending with %d: one object with schemaVersion 1 and camelCase keys, no secret",
    async (_command, _status, given) => {
      const { cloud } = bench();
      await using _prepared = await given.prepare?.(bench());
      const words = [...given.words, "--output", "json", "-vvv"];
      const ran = await cloud.run(words, {
        cwd: cloud.folder,
        environment: given.environment ?? {},
      });
      const answer = JSON.parse(ran.stdout) as Readonly<Record<string, unknown>>;
      expect({ status: ran.status, keys: Object.keys(answer) }).toEqual({
        status: given.status,
        keys: ["schemaVersion", ...given.keys],
      });
      expect(answer["schemaVersion"]).toBe(1);
      expect(keysOf(answer).filter((key) => !/^[a-z][A-Za-z0-9]*$/.test(key))).toEqual([]);
      expect(ran.stdout + ran.stderr).not.toContain(cloud.environment["CLOUD_SECRET_ACCESS_KEY"]!);
    },
  );

  test("create: the cluster, what each phase took, and the command that comes next", () => {
    const answer: unknown = JSON.parse(bench().created.stdout);
    expect(answer).toMatchObject({
      schemaVersion: 1,
      cluster: { id: "base", state: "running", counts: { masters: 1, agents: 0, publicAgents: 0 } },
      phases: expect.any(Array) as unknown,
      next: "cluster-cloud wait --cluster-id base",
    });
  });
});

/** Of the object and all inside it. */
function keysOf(value: unknown): readonly string[] {
  if (typeof value !== "object" || value === null) return [];
  if (Array.isArray(value)) return value.flatMap(keysOf);
  return Object.entries(value).flatMap(([key, inner]) => [key, ...keysOf(inner)]);
}
