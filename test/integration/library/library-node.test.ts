/** The commands of the library's nodes, run by a real shell. */

import { chmod, mkdir, readFile, readdir, rm, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "bun:test";
import type { NodeCommand } from "../../../src/index.ts";
import { unmarked } from "../../../src/outside-text.ts";
import { ClusterNode } from "../../../src/library/cluster-node.ts";
import { SharedConnections } from "../../../src/library/runtime.ts";
import type { Progress } from "../../../src/system/runtime.ts";
import { silentProgress } from "../../support/silent-progress.ts";
import { failureOf } from "../../support/failure-of.ts";
import { type FolderMachine, machinesLack, startMachines } from "../../support/install-machine.ts";
import { longEnough } from "../../support/long-enough.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { until } from "../../support/until.ts";

interface Bench extends AsyncDisposable {
  readonly node: ClusterNode;
  readonly machine: FolderMachine;
  /** How often connections were opened. */
  readonly opened: () => number;
  readonly closed: () => number;
  readonly shared: SharedConnections;
}

async function startBench(progress: Progress = silentProgress): Promise<Bench> {
  const machines = await startMachines({ roles: ["master"], progress });
  const counts = { opened: 0, closed: 0 };
  const shared = new SharedConnections(() => {
    counts.opened += 1;
    // The machines' pool is longer-lived than each connection.
    return {
      ...machines.connections,
      [Symbol.asyncDispose]: async () => void (counts.closed += 1),
    };
  });
  return {
    node: new ClusterNode(machines.nodes[0]!, { id: "mine" }, shared),
    machine: machines.machines[0]!,
    opened: () => counts.opened,
    closed: () => counts.closed,
    shared,
    [Symbol.asyncDispose]: async () => {
      await shared[Symbol.asyncDispose]();
      await machines[Symbol.asyncDispose]();
    },
  };
}

const awkward = ["a b", "it's", "$HOME", "", "*", "new\nline", 'say "so"', "-n"];

describe.skipIf(machinesLack !== undefined)("a node of the library", () => {
  test.each([
    ["alone", {}],
    ["with variables", { env: { A: "1" } }],
  ])("passes exactly the given arguments, %s", async (_, more: Partial<NodeCommand>) => {
    await using bench = await startBench();
    const { stdout } = await bench.node.run({ args: ["printf", "[%s]", ...awkward], ...more });
    expect(stdout).toBe(awkward.map((word) => `[${word}]`).join(""));
  });

  test("returns status, stdout and stderr unchanged", async () => {
    await using bench = await startBench();
    const args = ["sh", "-c", "echo out; echo err >&2; exit 37"];
    const result = { status: 37, stdout: "out\n", stderr: "err\n" };
    expect(await bench.node.run({ args, reject: false })).toEqual(result);
    const failure = await failureOf(bench.node.run({ args }));
    expect(failure).toMatchObject({
      id: "remote-command-failed",
      facts: { node: "master_0", ...result },
    });
    expect(failure.message).toMatch(/^master_0: sh exited with status 37:\n +err$/);
    expect(await bench.node.run({ args: ["true"] })).toEqual({ status: 0, stdout: "", stderr: "" });
    const missing = await bench.node.run({ args: ["no-such-program"], reject: false });
    expect(missing.status).toBe(127);
  });

  test("names the process that holds the output of a command that has ended", async () => {
    const held = Promise.withResolvers<number>();
    const told: string[] = [];
    const note = (text: string): void => {
      told.push(unmarked(text));
      held.resolve(Number(/\(tail (\d+)\)/.exec(unmarked(text))?.[1]));
    };
    await using bench = await startBench({ ...silentProgress, note });
    const args = ["sh", "-c", "tail -f /dev/null & echo done; exit 3"];
    const running = bench.node.run({ args, reject: false });
    process.kill(await held.promise);
    expect(await running).toEqual({ status: 3, stdout: "done\n", stderr: "" });
    expect(told).toEqual([
      expect.stringMatching(
        /^master_0: the command has ended with status 3\. .+ still holds its output open/,
      ),
    ]);
  });

  test("passes variables without any argument list, and stdin after them", async () => {
    await using bench = await startBench();
    const env = { SECRET: "s3cret 'word'\n$5", EMPTY: "" };
    const show =
      'printf "%s|%s|" "$SECRET" "${EMPTY-unset}"; tr "\\0" " " </proc/$$/cmdline; echo; cat';
    const { stdout } = await bench.node.run({
      args: ["sh", "-c", show],
      env,
      input: "line 1\nline 2",
    });
    expect(stdout).toStartWith("s3cret 'word'\n$5||sh -c ");
    expect(stdout).toEndWith("\nline 1\nline 2");
    expect(bench.machine.commands.join()).not.toContain("s3cret");
    expect((await failureOf(bench.node.run({ args: ["true"], env: { "A B": "" } }))).id).toBe(
      "bad-usage",
    );
    expect((await failureOf(bench.node.run({ args: [] }))).id).toBe("bad-usage");
  });

  test("runs as root, in the requested folder", async () => {
    await using bench = await startBench();
    await bench.node
      .run({ args: ["pwd"], cwd: "/tmp" })
      .then(({ stdout }) => expect(stdout).toBe("/tmp\n"));
    await bench.node.run({ args: ["pwd"], asRoot: false });
    const { stdout } = await bench.node.run({
      args: ["pwd"],
      cwd: "/tmp",
      env: { A: "1" },
      asRoot: false,
    });
    expect(stdout).toBe("/tmp\n");
    expect(bench.machine.commands.map((line) => line.includes("sudo -n"))).toEqual([
      true,
      false,
      false,
    ]);
  });

  test("streams output, and ends a command that takes too long or is cancelled", async () => {
    await using bench = await startBench();
    const pieces: string[] = [];
    const cancellation = new AbortController();
    const reason = new Error("enough");
    const cancelled: unknown = await failureOf(
      bench.node.run({
        args: ["sh", "-c", "echo first; exec sleep 60"],
        cancelSignal: cancellation.signal,
        onOutput: (stream, chunk) => {
          pieces.push(`${stream}: ${chunk}`);
          cancellation.abort(reason);
        },
      }),
    );
    expect(cancelled).toBe(reason);
    expect(pieces).toEqual(["stdout: first\n"]);
    expect((await failureOf(bench.node.run({ args: ["sleep", "60"], timeoutMs: 200 }))).id).toBe(
      "deadline-passed",
    );
  });

  test("throws what the caller's function for output throws, and ends the command", async () => {
    await using bench = await startBench();
    const reason = new Error("not what I expect");
    const onOutput = (): void => {
      throw reason;
    };
    for (const line of ["echo first", "echo first; exec sleep 60"]) {
      const thrown: unknown = await failureOf(
        bench.node.run({ args: ["sh", "-c", line], onOutput }),
      );
      expect(thrown).toBe(reason);
    }
    expect((await bench.node.run({ args: ["echo", "next"] })).stdout).toBe("next\n");
    expect(bench.opened()).toBe(1);
  });

  test("takes commands that are longer than an argument can be", async () => {
    await using bench = await startBench();
    const script = 'printf "%s %s %s" "${#1}" "$#" "$(cat)"';
    const quotes = "'".repeat(100_000);
    const command = {
      args: ["sh", "-c", script, "sh", quotes, ...Array<string>(50_000).fill("x")],
      input: "in",
    };
    expect((await bench.node.run(command)).stdout).toBe("100000 50001 in");
  });

  test("brings files and folders back, and refuses what cannot be fetched", async () => {
    await using bench = await startBench();
    await using scratch = await scratchFolder();
    const remote = join(scratch.path, "remote");
    await Bun.write(join(remote, "reports", "a.xml"), "1");
    await Bun.write(join(remote, "reports", "deep", "b.xml"), "22");
    const here = join(scratch.path, "here");
    const fetch = (path: string, local: string) =>
      bench.node.fetch({ remote: path, local: join(here, local) });
    expect(await fetch(join(remote, "reports"), "reports")).toEqual({
      files: 2,
      bytes: 3,
      shrunk: [],
    });
    expect(await readFile(join(here, "reports", "deep", "b.xml"), "utf8")).toBe("22");
    expect(await fetch(join(remote, "reports", "a.xml"), "a.xml")).toEqual({
      files: 1,
      bytes: 1,
      shrunk: [],
    });
    expect((await failureOf(fetch(join(remote, "reports"), "reports"))).id).toBe("bad-usage");
    expect((await failureOf(fetch("reports", "other"))).id).toBe("bad-usage");
    await symlink("/etc/passwd", join(remote, "reports", "link"));
    expect(await failureOf(fetch(join(remote, "reports"), "hostile"))).toMatchObject({
      id: "transfer-failed",
      message: expect.stringContaining("leads out of the folder"),
    });
    expect((await readdir(here)).toSorted()).toEqual(["a.xml", "reports"]);
  });

  test("shares connections between commands, closes them when idle, and opens them again", async () => {
    await using bench = await startBench();
    await Promise.all([bench.node.run({ args: ["true"] }), bench.node.run({ args: ["true"] })]);
    await bench.node.run({ args: ["true"] });
    expect(bench.opened()).toBe(1);
    await until("they are let go of", () => bench.closed() === 1);
    await bench.node.run({ args: ["true"] });
    expect(bench.opened()).toBe(2);
    await bench.shared[Symbol.asyncDispose]();
    expect((await failureOf(bench.node.run({ args: ["true"] }))).id).toBe("cluster-not-found");
  });

  test("sends files and folders, replaces files, and keeps the others of a folder", async () => {
    await using bench = await startBench();
    await using folder = await scratchFolder();
    const at = (name: string): string => join(folder.path, name);
    await mkdir(at("own/deep"), { recursive: true });
    await writeFile(at("own/deep/run"), "#!/bin/sh\n", { mode: 0o755 });
    await writeFile(at("own/a file"), "one");
    const names = Array.from({ length: 300 }, (_, index) => at(`file ${index}`));
    for (const name of names) await writeFile(name, "x");
    const remote = at("node/files/");
    const local = [at("own"), ...names];
    expect(await bench.node.send({ local, remote })).toEqual({ files: 302, bytes: 313 });
    expect((await readdir(remote)).length).toBe(301);
    await writeFile(join(remote, "own/other"), "stays");
    await writeFile(at("own/a file"), "two");
    await chmod(at("node/files/own"), 0o1777);
    await bench.node.send({ local: at("own"), remote: at("node/files/own") });
    expect((await stat(at("node/files/own"))).mode & 0o7777).toBe(0o1777);
    expect(await readFile(join(remote, "own/a file"), "utf8")).toBe("two");
    expect(await readFile(join(remote, "own/other"), "utf8")).toBe("stays");
    expect((await stat(join(remote, "own/deep/run"))).mode & 0o777).toBe(0o755);
    expect((await readdir(remote)).filter((name) => name.startsWith("."))).toEqual([]);
    await bench.node.send({ local: at("own/a file"), remote: at("node/new name") });
    expect(await readFile(at("node/new name"), "utf8")).toBe("two");
  });

  test("sends nothing that isn't there, leads away or has no place", async () => {
    await using bench = await startBench();
    await using folder = await scratchFolder();
    const at = (name: string): string => join(folder.path, name);
    await mkdir(at("own"));
    await symlink("/etc/hostname", at("own/away"));
    await writeFile(at("file"), "x");
    const send = async (local: string | string[], remote: string) =>
      (await failureOf(bench.node.send({ local, remote }))).id;
    expect(await send(at("missing"), "/tmp/x")).toBe("bad-usage");
    expect(await send(at("own"), "/tmp/x")).toBe("bad-usage");
    expect(await send([at("file"), at("own/../file")], "/tmp/x/")).toBe("bad-usage");
    expect(await send([at("file"), at("own")], "/tmp/x")).toBe("bad-usage");
    expect(await send(at("file"), "relative")).toBe("bad-usage");
    await rm(at("own/away"));
    await writeFile(at("own/child"), "x");
    await mkdir(at("node/file"), { recursive: true });
    expect(await send(at("file"), at("node/file"))).toBe("transfer-failed");
    expect(await readdir(at("node"))).toEqual(["file"]);
  });

  test("waits until a command succeeds", async () => {
    await using bench = await startBench();
    await using folder = await scratchFolder();
    const file = join(folder.path, "count");
    const args = ["sh", "-c", 'echo x >>"$0"; wc -l <"$0"; [ "$(wc -l <"$0")" -ge "$1" ]', file];
    const { stdout } = await bench.node.waitUntil({ args: [...args, "2"], timeoutMs: 60_000 });
    expect(stdout.trim()).toBe("2");
    await longEnough(10, async (timeoutMs) => {
      const failure = await failureOf(bench.node.waitUntil({ args: [...args, "99"], timeoutMs }));
      if (failure.id === "deadline-passed") {
        expect(failure.hint).toBe("Allow more time with `timeoutMs`.");
        return false;
      }
      expect(failure).toMatchObject({ id: "remote-command-failed", facts: { status: 1 } });
      return true;
    });
  });
});
