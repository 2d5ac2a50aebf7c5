/** scripts/test-tier.ts, with tiers of small test files. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { scratchFolder } from "../../support/scratch-folder.ts";

const script = join(import.meta.dir, "..", "..", "..", "scripts", "test-tier.ts");

async function startTier(
  folder: string,
  tier: string,
  files: Readonly<Record<string, string>>,
  ...more: string[]
) {
  for (const [name, lines] of Object.entries(files)) {
    const text = `import { expect, test } from "bun:test";\n${lines}\n`;
    await Bun.write(join(folder, "test", tier, name), text);
  }
  const environment = { PATH: process.env["PATH"] ?? "", TMPDIR: folder };
  return Bun.spawn([process.execPath, script, tier, ...more], {
    cwd: folder,
    env: environment,
    stdout: "pipe",
    stderr: "pipe",
  });
}

async function runTier(tier: string, files: Readonly<Record<string, string>>, ...more: string[]) {
  await using folder = await scratchFolder();
  const child = await startTier(folder.path, tier, files, ...more);
  const outputs = [new Response(child.stdout).text(), new Response(child.stderr).text()] as const;
  const [status, stdout, stderr] = await Promise.all([child.exited, ...outputs]);
  return { status, stdout, stderr };
}

const files = {
  "a.test.ts": `
    test("passes", async () => { await Bun.sleep(300); });
    test("fails", async () => { await Bun.sleep(300); expect(1).toBe(2); });
    test.skip("is skipped", () => {});`,
  "deeper/b.test.ts": `
    test("is slow", async () => { await Bun.sleep(400); });
    test("passes as well", async () => { await Bun.sleep(400); });`,
  "c.test.ts": `import "./missing.ts"; test("is never run", () => {});`,
  "vm-d.test.ts": `test("ends everything", () => process.exit(3));`,
};

test("counts all files; one that can't be loaded or ends early counts as a failure", async () => {
  const { status, stdout, stderr } = await runTier("e2e", files);
  const failed = ["a", "c", "vm-d"].map((name) => `failed test/e2e/${name}.test.ts\n`);
  expect({ status, stdout }, stderr).toEqual({
    status: 0,
    stdout: `3 3 1\n${failed.join("")}skipped 1 test/e2e/a.test.ts doesn't say why\n`,
  });
  const rows = [...stderr.matchAll(/^ +\d+ s {2}test\/e2e\/(\S+)\.test\.ts$/gm)];
  expect(new Set(rows.map(([, name]) => name))).toEqual(new Set(["a", "c", "deeper/b", "vm-d"]));
  if (process.platform === "linux")
    expect(stderr).toMatch(
      /^e2e: \d+ s, of the processors' time .*; started [1-9]\d* processes, /m,
    );
});

test("reasons for skipped tests are counted, whether a test or its group has them", async () => {
  const { stdout } = await runTier("unit", {
    "a.test.ts": `
    import { describe } from "bun:test";
    test.skip("one (no <b> here)", () => {});
    describe.skip("some (no <b> here)", () => { test("two", () => {}); });
    test.skip("three (skipped: needs root)", () => {});
    test("four (no <b> here)", () => {});`,
  });
  expect(stdout).toBe("1 0 3\nskipped 2 no <b> here\nskipped 1 needs root\n");
});

test("what failed leaves its output, its name and the line that runs it again with the same seed", async () => {
  await using folder = await scratchFolder();
  const child = await startTier(
    folder.path,
    "e2e",
    { "a.test.ts": files["a.test.ts"], "deeper/b.test.ts": `test("passes", () => {});` },
    "--shuffled",
  );
  await child.exited;
  const kept = join(folder.path, "dist", "failed-tests");
  expect([...new Set((await Bun.file(join(kept, "list")).text()).split("\n"))]).toEqual([
    "e2e test/e2e/a.test.ts",
    "",
  ]);
  const log = await Bun.file(join(kept, "test-e2e-a.test.ts.log")).text();
  expect(log).toContain("(fail) fails");
  const [line = "", seed] =
    /^bun test --timeout=\d+ --randomize --seed=(\d+) .\/test\/e2e\/a.test.ts$/m.exec(log) ?? [];
  expect(log).toContain(` --seed=${seed}\n`);
  const argv = [process.execPath, ...line.split(" ").slice(1)];
  const again = Bun.spawn(argv, { cwd: folder.path, stdout: "ignore", stderr: "pipe" });
  expect(await new Response(again.stderr).text()).toContain("(fail) fails");
  const only = Bun.spawn([process.execPath, script, "e2e", "test/e2e/deeper/b.test.ts"], {
    cwd: folder.path,
    stdout: "pipe",
    stderr: "ignore",
  });
  expect(await new Response(only.stdout).text()).toBe("1 0 0\n");
});

test.each(["unit", "integration"])("a failure is counted in the tier %s", async (tier) => {
  const { "a.test.ts": a, "deeper/b.test.ts": b, "c.test.ts": c } = files;
  expect((await runTier(tier, { "a.test.ts": a, "deeper/b.test.ts": b })).stdout).toStartWith(
    "3 1 1\n",
  );
  expect((await runTier(tier, { "deeper/b.test.ts": b, "c.test.ts": c })).stdout).toStartWith(
    "2 1 0\n",
  );
});

test.each(["integration", "e2e"])(
  "a file that fails once runs again and is named, in the tier %s",
  async (tier) => {
    const once = `
    import { existsSync, writeFileSync } from "node:fs";
    test("passes the second time", () => {
      const isFirst = !existsSync("marker");
      writeFileSync("marker", "");
      expect(isFirst).toBe(false);
    });`;
    const { stdout } = await runTier(tier, {
      "a.test.ts": files["a.test.ts"],
      "once.test.ts": once,
    });
    expect(stdout).toStartWith(
      `2 1 1\nunsteady test/${tier}/once.test.ts\nfailed test/${tier}/a.test.ts\n`,
    );
  },
);

test("the output of each file is in one piece, whichever files run at the same time", async () => {
  const { stderr } = await runTier("e2e", files);
  const order = [
    "(pass) passes [",
    "(fail) fails [",
    "(skip) is skipped",
    "test/e2e/a.test.ts: ended with 1 after",
  ];
  const block = stderr.slice(stderr.indexOf(order[0]!), stderr.indexOf(order[3]!));
  expect(order.map((text) => stderr.indexOf(text)).toSorted((one, other) => one - other)).toEqual(
    order.map((text) => stderr.indexOf(text)),
  );
  expect(block).not.toContain("deeper/b.test.ts");
});

test("files that keep all processors busy run one at a time, beside the others", async () => {
  /** A test file that logs when it begins and ends. */
  const noting = (name: string, ms: number) => `
    import { appendFileSync } from "node:fs";
    test("notes", async () => {
      appendFileSync("notes", "+${name} ");
      await Bun.sleep(${ms});
      appendFileSync("notes", "-${name} ");
    });`;
  await using folder = await scratchFolder();
  const booting = (name: string): string =>
    `import { boot } from "./support/test-vms.ts";\nboot();${noting(name, 300)}`;
  const child = await startTier(folder.path, "e2e", {
    ...machines,
    "a.test.ts": noting("a", 3_000),
    "one.test.ts": booting("one"),
    "two.test.ts": booting("two"),
  });
  expect(await new Response(child.stdout).text()).toBe("3 0 0\n");
  const notes = await Bun.file(join(folder.path, "notes")).text();
  expect(notes.replace(/\+a /, "")).toBe("+one -one +two -two -a ");
});

/** Modules that tests import; the first one makes its tests slow. */
const machines = {
  "support/test-vms.ts": "export const boot = () => {};\nexport interface Machine {}",
  "support/two-machines.ts": `export { boot } from "./test-vms.ts";`,
};

test("the quick run leaves out what boots machines by whatever way it does, and nothing else", async () => {
  const passing = `test("passes", () => {});`;
  const mixed = {
    ...machines,
    "direct.test.ts": `import { boot } from "./support/test-vms.ts";\nboot();${passing}`,
    "deeper/indirect.test.ts": `import { boot } from "../support/two-machines.ts";\nboot();${passing}`,
    "late.test.ts": `test("boots", async () => (await import("./support/test-vms.ts")).boot());`,
    "types.test.ts": `import type { Machine } from "./support/test-vms.ts";\nexport const none: Machine = {};${passing}`,
    "vm-name.test.ts": passing,
  };
  const quick = await runTier("e2e", mixed, "--quick");
  expect(quick.stdout, quick.stderr).toBe("2 0 0\n");
  const left = [
    ...quick.stderr.matchAll(/^left out: test\/e2e\/(\S+)\.test\.ts, which boots/gm),
  ].map(([, name]) => name);
  expect(left).toEqual(["deeper/indirect", "direct", "late"]);
  expect((await runTier("e2e", mixed)).stdout).toBe("5 0 0\n");
});

test.each([
  ["e2e", "test/e2e/a.test.ts"],
  ["integration", "integration"],
])(
  "an interrupt ends the tests of the tier %s, shows what was running, and keeps what had failed",
  async (tier, name) => {
    await using folder = await scratchFolder();
    const child = await startTier(folder.path, tier, {
      "a.test.ts": `
      test("is quick", () => {});
      test("is wrong", () => { expect(1).toBe(2); });
      test("waits", async () => { await Bun.write("pid", String(process.pid)); await Bun.sleep(50_000); });`,
    });
    const readPid = async (): Promise<string> =>
      await Bun.file(join(folder.path, "pid"))
        .text()
        .catch(() => "");
    while ((await readPid()) === "") await Bun.sleep(20);
    child.kill("SIGINT");
    await child.exited;
    expect(child.signalCode).toBe("SIGINT");
    const stderr = await new Response(child.stderr).text();
    expect(stderr).toContain("(fail) is wrong");
    expect(stderr).toEndWith(`${name}: not finished\n`);
    const list = await Bun.file(join(folder.path, "dist", "failed-tests", "list")).text();
    expect(list).toBe(`${tier} test/${tier}/a.test.ts\n`);
    const pid = Number(await readPid());
    const isRunning = (): boolean => {
      try {
        return process.kill(pid, 0);
      } catch {
        return false;
      }
    };
    for (let tries = 0; tries < 100 && isRunning(); tries += 1) await Bun.sleep(50);
    expect(isRunning()).toBe(false);
  },
);

test("an empty tier counts as not run", async () => {
  expect(await runTier("e2e", {})).toMatchObject({ status: 0, stdout: "0 0 0\n" });
});
