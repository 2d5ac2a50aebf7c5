import { expect, test } from "bun:test";
import { chmod, readFile, rm, stat, symlink, utimes } from "node:fs/promises";
import { join } from "node:path";
import { readCheckout } from "../../../../src/platform/checkout/checkout.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { checkoutBench as bench, extra, localConnection, sync } from "./checkout-bench.ts";

const { signal } = new AbortController();
test("a node whose version file has no variant, as in older releases, has the cluster's variant", async () => {
  await using place = await bench("oss");
  await place.write("opt/etc/version.json", '{"version": "1.10.11"}');
  expect(await sync(place)).toMatchObject({ sentFiles: 1 });
});

test("replaces tests and library, and keeps everything else", async () => {
  await using place = await bench("oss");
  await place.write(`${extra}/conftest.py`, "conf", 0o600);
  await place.write(`${extra}/run tests'é`, "#!/bin/sh", 0o700);
  await place.write(`${extra}/util/tools.py`, "tools");
  await place.write(`${extra}/util/__pycache__/tools.pyc`, "cache");
  await place.write(`${extra}/stale.pyc`, "cache");
  await place.write("checkout/packages/bootstrap/extra/cluster_internal_utils/new.py", "library");
  expect(await sync(place)).toEqual({ files: 5, sentFiles: 5, sentBytes: 28 });
  expect(await place.tree(place.tests)).toEqual([
    "./conftest.py",
    "./data/kept.txt",
    "./run tests'é",
    "./test_new.py",
    "./util/tools.py",
  ]);
  expect(await place.tree(place.library)).toEqual(["./kept.py", "./new.py"]);
  expect(await readFile(join(place.tests, "test_new.py"), "utf8")).toBe("new");
  expect((await stat(join(place.tests, "conftest.py"))).mode & 0o777).toBe(0o644);
  expect((await stat(join(place.tests, "run tests'é"))).mode & 0o777).toBe(0o755);
});

test("a second sync sends only changed files, with the same result", async () => {
  await using place = await bench("oss");
  await place.write(`${extra}/test_two.py`, "two");
  await place.write(`${extra}/run`, "run", 0o755);
  await sync(place);
  const before = await place.tree(place.tests);
  expect(await sync(place)).toEqual({ files: 3, sentFiles: 0, sentBytes: 0 });
  expect(await place.tree(place.tests)).toEqual(before);
  await place.write(`${extra}/test_two.py`, "TWO");
  await chmod(join(place.checkout, "..", extra, "run"), 0o644);
  await rm(join(place.checkout, "..", extra, "test_new.py"));
  // A changed mode counts too.
  expect(await sync(place)).toEqual({ files: 2, sentFiles: 2, sentBytes: 6 });
  expect(await place.tree(place.tests)).toEqual(["./data/kept.txt", "./run", "./test_two.py"]);
  expect(await readFile(join(place.tests, "test_two.py"), "utf8")).toBe("TWO");
  expect((await stat(join(place.tests, "run"))).mode & 0o777).toBe(0o644);
});

test("on an enterprise cluster, an open source checkout is put beside the cluster's own tests", async () => {
  await using place = await bench("enterprise");
  const own = "opt/packages/tests--1";
  await place.write(`${own}/conftest.py`, "enterprise");
  await place.write(`${own}/util/old.py`, "old");
  await place.write(`${own}/open_source_tests/test_gone.py`, "old");
  await place.write(`${own}/open_source_tests/data.json`, "kept");
  await place.write(`${extra}/conftest.py`, "open source");
  await place.write(`${extra}/sub/conftest.py`, "kept");
  await place.write(`${extra}/util/new.py`, "new");
  await place.write("checkout/packages/bootstrap/extra/cluster_internal_utils/new.py", "library");
  const expected = [
    "./conftest.py",
    "./data/kept.txt",
    "./open_source_tests/data.json",
    "./open_source_tests/sub/conftest.py",
    "./open_source_tests/test_new.py",
    "./test_old.py",
    "./util/new.py",
  ];
  for (const sentFiles of [3, 0]) {
    expect(await sync(place)).toMatchObject({ files: 3, sentFiles });
    expect(await place.tree(place.tests)).toEqual(expected);
  }
  expect(await readFile(join(place.tests, "conftest.py"), "utf8")).toBe("enterprise");
  expect(await place.tree(place.library)).toEqual(["./kept.py"]);
});

test("an enterprise checkout on an enterprise cluster goes to the tests folder itself", async () => {
  await using place = await bench("enterprise");
  await place.write("checkout/packages/upstream.json", "{}");
  await sync(place);
  expect(await place.tree(place.tests)).toEqual(["./data/kept.txt", "./test_new.py"]);
});

test("stale bytecode is removed together with its sources", async () => {
  await using place = await bench("oss");
  await place.write("opt/packages/tests--1/__pycache__/test_old.cpython-39.pyc", "cache");
  await sync(place);
  expect(await place.tree(place.tests)).toEqual(["./data/kept.txt", "./test_new.py"]);
});

// Shows R115.
test("a transfer that breaks off at any point leaves the old files and nothing else", async () => {
  await using place = await bench("oss");
  await place.write(`${extra}/test_two.py`, "2".repeat(3000));
  const before = await place.tree(join(place.checkout, "../opt"));
  // Headers, contents, padding and the end of the archive, cut at and between blocks.
  for (const cutAfterBytes of [0, 1, 512, 515, 1024, 1500, 1536, 4096, 4608, 5000, 5119]) {
    const failure: unknown = await sync(place, localConnection(cutAfterBytes)).catch(
      (error: unknown) => error,
    );
    expect(failure).toMatchObject({ id: "transfer-failed", transient: true });
    expect(String(failure)).toContain(
      "Cannot sync the checkout to master_0: the transfer was interrupted. The node still has its previous files.",
    );
    expect(await place.tree(join(place.checkout, "../opt"))).toEqual(before);
  }
  expect(await sync(place)).toMatchObject({ sentFiles: 2 });
});

test("repairs a swap that a power failure interrupted", async () => {
  await using place = await bench("oss");
  const beside = (what: string): string =>
    place.tests.replace("tests--1", `.tests--1.cluster-e2e-${what}`);
  await Bun.$`mv ${place.tests} ${beside("former")} && mkdir ${beside("new")} ${beside("incoming")}`;
  await sync(place);
  expect(await place.tree(place.tests)).toEqual(["./data/kept.txt", "./test_new.py"]);
  expect(await Bun.$`ls -A ${place.tests}/..`.text()).toBe(
    ".tests--1.cluster-e2e-sent-own\ntests--1\n",
  );
});

test("a link on the node is replaced, not written through", async () => {
  await using place = await bench("oss");
  await place.write("opt/elsewhere.txt", "precious");
  await symlink("../../elsewhere.txt", join(place.tests, "notes.txt"));
  await place.write(`${extra}/notes.txt`, "notes");
  await sync(place);
  expect(await readFile(join(place.tests, "../../elsewhere.txt"), "utf8")).toBe("precious");
  expect(await readFile(join(place.tests, "notes.txt"), "utf8")).toBe("notes");
});

test("two concurrent syncs have the result of one after the other", async () => {
  await using place = await bench("oss");
  await utimes(join(place.checkout, "..", extra, "test_new.py"), 1, 1);
  const reports = await Promise.all([sync(place), sync(place), sync(place)]);
  expect(reports.map(({ files }) => files)).toEqual([1, 1, 1]);
  expect(await place.tree(place.tests)).toEqual(["./data/kept.txt", "./test_new.py"]);
});

test.each([
  ["opt/etc/version.json", "does not exist"],
  ["opt/packages", "does not exist"],
])("without %s the cluster counts as not yet installed", async (path, reason) => {
  await using place = await bench("oss");
  await rm(join(place.checkout, "..", path), { recursive: true });
  const failure: unknown = await sync(place).catch((error: unknown) => error);
  expect(failure).toMatchObject({ id: "not-installed" });
  expect(String(failure)).toContain("The platform is not installed on master_0 yet: ");
  expect(String(failure)).toContain(reason);
});

test("a library that the node doesn't have stops the whole sync", async () => {
  await using place = await bench("oss");
  await place.write("checkout/packages/bootstrap/extra/cluster_internal_utils/new.py", "library");
  await rm(place.library, { recursive: true });
  expect(await sync(place).catch((error: unknown) => error)).toMatchObject({ id: "not-installed" });
  expect(await place.tree(place.tests)).toEqual(["./data/kept.txt", "./test_old.py"]);
});

test("a link that leaves the checkout is rejected; the target of one inside is sent", async () => {
  await using place = await bench("oss");
  await place.write("checkout/shared.txt", "shared");
  await symlink("../../../shared.txt", join(place.checkout, "..", extra, "inside.txt"));
  await sync(place);
  expect(await readFile(join(place.tests, "inside.txt"), "utf8")).toBe("shared");
  await symlink("/etc/passwd", join(place.checkout, "..", extra, "outside.txt"));
  expect(await readCheckout(place.checkout, signal)).toEqual({
    problems: [
      `${place.checkout}/packages/integration-test/extra/outside.txt is a symbolic link to /etc/passwd, outside ${place.checkout}.`,
    ],
  });
});

test("a folder that isn't a checkout is rejected with the paths that were tried", async () => {
  await using folder = await scratchFolder();
  expect(await readCheckout(folder.path, signal)).toEqual({
    problems: [
      `${folder.path} is neither a platform's folder, with platform.yaml, nor a checkout: it has neither packages/integration-test/extra nor packages/dcos-integration-test/extra.`,
    ],
  });
  expect(await readCheckout("/nonexistent/checkout", signal)).toEqual({
    problems: ["/nonexistent/checkout does not exist."],
  });
});

test("a checkout for another layout is rejected with the path that was tried", async () => {
  await using place = await bench("oss");
  await Bun.$`mv integration-test dcos-integration-test`.cwd(join(place.checkout, "packages"));
  expect(await sync(place).catch((error: unknown) => error)).toMatchObject({
    id: "bad-usage",
    message: expect.stringContaining(`${place.checkout}/packages/integration-test/extra `),
  });
});

test("a name with a line break on the node is not mistaken for an existing file", async () => {
  await using place = await bench("oss");
  const { mtimeMs } = await stat(join(place.checkout, "..", extra, "test_new.py"));
  const record = `x\n644 3 ${(mtimeMs / 1000).toFixed(6)} tests`;
  await place.write(`opt/packages/tests--1/${record}/test_new.py`, "forged");
  expect(await sync(place)).toMatchObject({ files: 1, sentFiles: 1 });
  expect(await readFile(join(place.tests, "test_new.py"), "utf8")).toBe("new");
});

test.each([
  [
    "tar: a.py: Cannot write: No space left on device\nthe transfer was interrupted",
    "no space is left on its disk",
    false,
  ],
  ["the transfer was interrupted", "the transfer was interrupted", true],
])("a node that answers %j has a failure with the reason", async (stderr, reason, transient) => {
  await using place = await bench("oss");
  const connection = localConnection();
  const failing = {
    ...connection,
    run: async (...given: Parameters<typeof connection.run>) =>
      given[0].task === "syncing the checkout"
        ? { status: 11, stdout: "", stderr }
        : connection.run(...given),
  };
  expect(await failureOf(sync(place, failing))).toMatchObject({
    id: "transfer-failed",
    transient,
    facts: { node: "master_0", status: 11 },
    message: expect.stringContaining(`: ${reason}.`),
  });
});

test("a node on which nothing can be asked is reported as such, and gets nothing", async () => {
  await using place = await bench("oss");
  const ran: string[] = [];
  const connection = {
    ...localConnection(),
    run: async ({ task = "" }) => {
      ran.push(task);
      return { status: 1, stdout: "", stderr: "sudo: a password is required\n" };
    },
  };
  expect(await failureOf(sync(place, connection))).toMatchObject({
    id: "remote-command-failed",
    facts: { node: "master_0", output: ["sudo: a password is required"] },
  });
  expect(ran).toEqual(["checking what is installed"]);
});
