/** How a sync detects which files have changed. */
import { expect, test } from "bun:test";
import { readFile, utimes } from "node:fs/promises";
import { join } from "node:path";
import type { Connection } from "../../../../src/ssh/connection/connection.ts";
import { checkoutBench as bench, extra, localConnection, sync } from "./checkout-bench.ts";

/** Also records which commands ran, by the mark at their beginning. */
function notingConnection(): { readonly connection: Connection; readonly marks: string[] } {
  const connection = localConnection();
  const marks: string[] = [];
  const run: Connection["run"] = (command, given) => {
    marks.push(/^: (\S+)/.exec(command.argv.at(-1) ?? "")?.[1] ?? "another");
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

test("files that changed within a second, without a change of size, are sent", async () => {
  await using place = await bench("oss");
  const source = join(place.checkout, "..", extra, "test_new.py");
  await utimes(source, 1_600_000_000.1, 1_600_000_000.1);
  await sync(place);
  await Bun.write(source, "NEW");
  await utimes(source, 1_600_000_000.104, 1_600_000_000.104);
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
