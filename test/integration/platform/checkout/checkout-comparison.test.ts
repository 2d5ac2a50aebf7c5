/** How a sync detects which files have changed. */
import { expect, test } from "bun:test";
import { readFile, rm, utimes } from "node:fs/promises";
import { join } from "node:path";
import type { Connection } from "../../../../src/ssh/connection/connection.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { checkoutBench as bench, extra, localConnection, sync } from "./checkout-bench.ts";

/** Also records which commands ran, by the mark at their beginning. */
function notingConnection(): { readonly connection: Connection; readonly marks: string[] } {
  const connection = localConnection();
  const marks: string[] = [];
  const run: Connection["run"] = (command, given) => {
    marks.push(command.argv[3] ?? "another");
    return connection.run(command, given);
  };
  return { connection: { ...connection, run }, marks };
}

test("if sizes and times are unchanged, one command is enough and no file is read", async () => {
  await using place = await bench("oss");
  await place.write(`${extra}/deeper/test two.py`, "two");
  await place.write("checkout/packages/bootstrap/extra/cluster_internal_utils/new.py", "library");
  await sync(place);
  const { connection, marks } = notingConnection();
  const sumOf = (): Promise<string> => Promise.reject(new Error("a file was read"));
  expect(await sync(place, connection, { sumOf })).toMatchObject({ files: 3, sentFiles: 0 });
  expect(marks).toEqual(["e2e-sync-state"]);
});

test("files with other times, as in a fresh clone, are compared and not sent again", async () => {
  await using place = await bench("oss");
  await place.write(`${extra}/a\\b 'c'.py`, "one");
  await place.write("checkout/packages/bootstrap/extra/cluster_internal_utils/new.py", "library");
  await sync(place);
  await Bun.$`find . -type f -exec touch -d @1600000000.5 {} +`.cwd(place.checkout);
  const { connection, marks } = notingConnection();
  expect(await sync(place, connection)).toMatchObject({ files: 3, sentFiles: 0 });
  expect(marks).toEqual(["e2e-sync-state", "e2e-sync-sums"]);
});

test("files that changed within a millisecond, without a change of size, are sent", async () => {
  await using place = await bench("oss");
  const source = join(place.checkout, "..", extra, "test_new.py");
  await utimes(source, 1_600_000_000.1, 1_600_000_000.1);
  await sync(place);
  await Bun.write(source, "NEW");
  await utimes(source, 1_600_000_000.1005, 1_600_000_000.1005);
  expect(await sync(place)).toMatchObject({ sentFiles: 1 });
  expect(await readFile(join(place.tests, "test_new.py"), "utf8")).toBe("NEW");
  // So are those that were changed on the node.
  await Bun.write(join(place.tests, "test_new.py"), "own");
  expect(await sync(place)).toMatchObject({ sentFiles: 1 });
  expect(await readFile(join(place.tests, "test_new.py"), "utf8")).toBe("NEW");
});

test("checksums detect files that changed without a change of size or time", async () => {
  await using place = await bench("oss");
  const source = join(place.checkout, "..", extra, "test_new.py");
  await utimes(source, 1_600_000_000, 1_600_000_000);
  await sync(place);
  await Bun.write(source, "NEW");
  await utimes(source, 1_600_000_000, 1_600_000_000);
  expect(await sync(place)).toMatchObject({ sentFiles: 0 });
  expect(await sync(place, localConnection(), { checksum: true })).toMatchObject({ sentFiles: 1 });
  expect(await readFile(join(place.tests, "test_new.py"), "utf8")).toBe("NEW");
});

const library = "checkout/packages/bootstrap/extra/cluster_internal_utils";

/** Syncs a checkout with a library, and tests in two folders. */
async function syncedBench() {
  const place = await bench("oss");
  await place.write(`${extra}/test_other.py`, "other");
  await place.write(`${extra}/deeper/test_deep.py`, "deep");
  await place.write(`${library}/new.py`, "library");
  await sync(place);
  return place;
}

const synced = ["./data/kept.txt", "./deeper/test_deep.py", "./test_new.py", "./test_other.py"];

test("files that have not changed stay, whatever is sent beside them", async () => {
  await using place = await syncedBench();
  expect(await place.tree(place.tests)).toEqual(synced);
  await place.write(`${extra}/test_new.py`, "newer");
  expect(await sync(place)).toEqual({ files: 4, sentFiles: 1, sentBytes: 5 });
  expect(await place.tree(place.tests)).toEqual(synced);
  const texts = ["test_new.py", "test_other.py"].map((name) =>
    readFile(join(place.tests, name), "utf8"),
  );
  expect(await Promise.all(texts)).toEqual(["newer", "other"]);
  expect(await place.tree(place.library)).toEqual(["./kept.py", "./new.py"]);
});

test("a change of the library alone is sent", async () => {
  await using place = await syncedBench();
  await place.write(`${library}/new.py`, "newer");
  expect(await sync(place)).toMatchObject({ sentFiles: 1 });
  expect(await readFile(join(place.library, "new.py"), "utf8")).toBe("newer");
  expect(await place.tree(place.tests)).toEqual(synced);
});

test("a test that the checkout no longer has is removed, even if nothing is sent", async () => {
  await using place = await syncedBench();
  await rm(join(place.checkout, "..", extra, "test_other.py"));
  expect(await sync(place)).toMatchObject({ sentFiles: 0 });
  expect(await place.tree(place.tests)).toEqual(
    synced.filter((name) => name !== "./test_other.py"),
  );
});

test("if the files on the node can't be compared, nothing is sent", async () => {
  await using place = await syncedBench();
  await Bun.$`find . -type f -exec touch -d @1600000000.5 {} +`.cwd(place.checkout);
  const { connection, marks } = notingConnection();
  const run: Connection["run"] = async (command, given) => {
    const result = await connection.run(command, given);
    return marks.at(-1) === "e2e-sync-sums"
      ? { ...result, status: 1, stderr: "sha256sum: Input/output error\n" }
      : result;
  };
  const failure = await failureOf(sync(place, { ...connection, run }));
  expect(failure).toMatchObject({ id: "transfer-failed", facts: { node: "master_0", status: 1 } });
  expect(failure.message).toContain("sha256sum: Input/output error");
  expect(marks).toEqual(["e2e-sync-state", "e2e-sync-sums"]);
});

test("if a node can't say what is installed, its last words are the reason", async () => {
  await using place = await bench("oss");
  const run = async () => ({
    status: 2,
    stdout: "",
    stderr: `${"x".repeat(600)}\nsh: syntax error\n`,
  });
  const failure = await failureOf(sync(place, { ...localConnection(), run }));
  expect(failure.id).toBe("remote-command-failed");
  expect(failure.message).toEndWith(": sh: syntax error.");
  expect(failure.facts).toMatchObject({
    node: "master_0",
    status: 2,
    output: [expect.stringMatching(/^x{499}…$/), "sh: syntax error"],
  });
});
