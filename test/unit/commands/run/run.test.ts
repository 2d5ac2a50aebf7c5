import { expect, test } from "bun:test";
import { containerKind } from "../../../../src/backend/container/container-kind.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { runCommandLine } from "../../../support/run-command.ts";
import type { Context } from "../../../../src/cli/command.ts";
import type { BackendKind } from "../../../../src/backend/contract.ts";
import { runCommand } from "../../../../src/commands/run/run.ts";
import { ClusterError, type ErrorId } from "../../../../src/errors.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

/** The exit code that `run` asks for where finding the cluster fails so; undefined where the error's own stands. */
async function statusFor(id: ErrorId): Promise<number | undefined> {
  const failure = new ClusterError(id, "no");
  const backend = { find: () => Promise.reject(failure) };
  const kind = {
    options: {},
    machineId: /x/,
    open: async () => backend,
  } as unknown as BackendKind;
  const asked: number[] = [];
  const context = {
    signal: neverAborted,
    nameFlags: (text: string) => text,
    output: { format: "text" },
    isTerminal: { stdin: false, stdout: false },
    failuresExitWith: (code: number) => void asked.push(code),
  } as unknown as Context;
  const input = {
    clusterId: "a",
    words: ["true"],
    environment: [],
    environmentFile: [],
    fetch: [],
    node: [],
  };
  const command = runCommand(kind);
  const error = await command
    .run(input as unknown as Parameters<typeof command.run>[0], context)
    .catch((reason: unknown) => reason);
  expect(error).toBe(failure);
  return asked[0];
}

test.each([
  ["cloud-failed", 255],
  ["engine-failed", 255],
  ["deadline-passed", 255],
  ["credentials-refused", undefined],
  ["not-permitted", undefined],
  ["cluster-not-found", undefined],
] satisfies [ErrorId, number | undefined][])(
  "a request that fails as %s before the connection: %p",
  async (id, status) => {
    expect(await statusFor(id)).toBe(status);
  },
);

test("two files can't be fetched to the same place", async () => {
  const running = runCommandLine("run --fetch a:x --fetch b:y --fetch c:x true", {
    kind: containerKind,
    backend: {},
    nowMs: 0,
  });
  const { id, message } = await failureOf(running);
  expect(id).toBe("bad-usage");
  expect(message).toEndWith("--fetch: two of them have the same local path, /tmp/x");
});

/** What `run` says before it has found the cluster, in a backend that cannot find any. */
const failureOfRun = (words: string) =>
  failureOf(
    runCommandLine(`run ${words} true`, {
      kind: containerKind,
      backend: {
        find: () => Promise.reject(new ClusterError("cluster-not-found", "There is none.")),
      },
      nowMs: 0,
    }),
  );

test("what is no node is refused before the cluster is looked for", async () => {
  const { id, message } = await failureOfRun("--node master_x");
  expect(id).toBe("bad-usage");
  expect(message).toStartWith('--node: "master_x" is not a node');
  expect((await failureOfRun("--node master_0")).message).toBe("There is none.");
});

test("files that are fetched to different places are no problem", async () => {
  expect((await failureOfRun("--fetch a:x --fetch b:y")).message).toBe("There is none.");
});

test("a dash as the password asks for it", async () => {
  expect((await failureOfRun("--login-pw -")).message).toBe("no answer to Login password: ");
  expect((await failureOfRun("--login-pw secret")).message).toBe("There is none.");
});

test.each(["run ", "run --local ", "run \t", "once example:etcd -- "])(
  "%j has no command, which would succeed",
  async (line) => {
    const running = runCommandLine(line, { kind: containerKind, backend: {}, nowMs: 0 });
    expect((await failureOf(running)).message).toBe("COMMAND: must not be empty");
  },
);

test("options for nodes can't be combined with --local", async () => {
  const line =
    "run --local --node agents --fetch a:x --no-test-env --user me --until 1s --output json true";
  const error = await failureOf(
    runCommandLine(line, { kind: containerKind, backend: {}, nowMs: 0 }),
  );
  expect(error.message.split("\n  ").slice(1)).toEqual([
    "--node: cannot be combined with --local",
    "--fetch: cannot be combined with --local",
    "--no-test-env: cannot be combined with --local",
    "--user: cannot be combined with --local",
    "--output: cannot be json with --local",
    "--fetch: cannot be combined with --until",
  ]);
});

test.each(["-x", "a b", ""])("%p is no user", async (name) => {
  const command = runCommand(containerKind);
  const invocation = { cwd: "/", environment: {} };
  expect(() => command.options.user.type.parse(name, invocation)).toThrow(
    "is not the name of a user",
  );
});

test("CLUSTER_ID is the cluster of a command without --cluster-id", async () => {
  const asked: string[] = [];
  const backend = {
    find: (id: string) => {
      asked.push(id);
      return Promise.reject(new ClusterError("cluster-not-found", "There is none."));
    },
  };
  const setting = { kind: containerKind, backend, nowMs: 0, environment: { CLUSTER_ID: "mine" } };
  for (const words of ["run true", "run -c other true"])
    await failureOf(runCommandLine(words, setting));
  expect(asked).toEqual(["mine", "other"]);
});
