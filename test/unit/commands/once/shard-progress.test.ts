import { expect, test } from "bun:test";
import { join } from "node:path";
import { ShardProgress } from "../../../../src/commands/once/shard-progress.ts";
import { outside } from "../../../../src/outside-text.ts";
import type { Progress } from "../../../../src/system/runtime.ts";
import { silentProgress } from "../../../support/silent-progress.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

/** Two shards, and what all of them report. */
function openShards() {
  const told: string[] = [];
  const all: Progress = {
    ...silentProgress,
    start: (title, subject) => {
      told.push(`${subject}: ${title}`);
      return {
        update: () => {},
        done: () => told.push("done"),
        [Symbol.dispose]: () => told.push("over"),
      };
    },
    waiting: (text) => void told.push(`(${text})`),
    note: (text) => void told.push(text),
    detail: (level, text) => void told.push(`${level} ${text}`),
    warn: (text) => void told.push(`Warning: ${text}`),
    hide: (secret) => void told.push(`hidden: ${secret}`),
    mask: (text) => text.replaceAll("secret", "***"),
    timings: () => [{ title: "Boot", ms: 7 }],
  };
  const waits = new Map<string, string>();
  const clock = { now: () => 0, sleep: async () => {} };
  const shard = (name: string) => new ShardProgress(all, { name, waits, clock });
  return { told, first: shard("shard_1"), second: shard("shard_2") };
}

test("every text says which shard it is about", () => {
  const { told, first, second } = openShards();
  {
    using step = first.start("Boot", "master_0");
    step.done();
  }
  {
    using _ = second.start("Create network");
  }
  first.note("It is ready.");
  second.warn("It is slow.");
  expect(told).toEqual([
    "shard_1 master_0: Boot",
    "done",
    "over",
    "shard_2: Create network",
    "over",
    "shard_1: It is ready.",
    "Warning: shard_2: It is slow.",
  ]);
});

test("what all shards wait for is one text, which changes only if one of theirs does", () => {
  const { told, first, second } = openShards();
  for (const text of ["1 of 2 machines to start", "1 of 2 machines to start"]) first.waiting(text);
  second.waiting("master_0 to accept SSH logins");
  first.waiting("");
  second.waiting("");
  expect(told).toEqual([
    "(shard_1: 1 of 2 machines to start)",
    "(shard_1: 1 of 2 machines to start\nshard_2: master_0 to accept SSH logins)",
    "(shard_2: master_0 to accept SSH logins)",
    "()",
  ]);
});

test("each shard has a log of its own, with secrets masked", async () => {
  await using folder = await scratchFolder();
  const { told, first, second } = openShards();
  const [one, two] = [join(folder.path, "one"), join(folder.path, "two")];
  first.note(`This is the ${outside("secret")}.`);
  first.logTo(one);
  second.logTo(two);
  {
    using _ = first.start("Boot", "master_0");
  }
  {
    using step = second.start("Create network");
    step.done("2 networks");
  }
  second.warn("It is slow.");
  for (const text of ["an answer", ""]) first.waiting(text);
  second.detail(3, "a detail");
  for (const { log } of [first, second]) log.close();
  const moment = "1970-01-01T00:00:00.000Z";
  expect(await Bun.file(one).text()).toBe(
    ["This is the ***.", "master_0: Boot …", "master_0: Boot: failed", "an answer", ""]
      .map((line) => line && `${moment} ${line}`)
      .join("\n"),
  );
  const lines = [
    "Create network …",
    "Create network: 2 networks",
    "Warning: It is slow.",
    "a detail",
  ];
  expect(await Bun.file(two).text()).toBe(lines.map((line) => `${moment} ${line}\n`).join(""));
  expect(told).toContain("3 shard_2: a detail");
});

test("a log that can't be written is warned of, and secrets and timings are those of all shards", () => {
  const { told, first } = openShards();
  first.logTo("/dev/null/log");
  first.hide("a password");
  expect(told).toEqual([
    expect.stringMatching(/^Warning: shard_1: cannot write the log: ENOTDIR/),
    "hidden: a password",
  ]);
  expect(first.mask("a secret")).toBe("a ***");
  expect(first.timings()).toEqual([{ title: "Boot", ms: 7 }]);
});
