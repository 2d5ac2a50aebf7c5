/** After a sync, what the checkout decides about is on the node as it is in the checkout, and what it has never had stays. */
import { expect, test } from "bun:test";
import { chmod, mkdir, readFile, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import {
  type CheckoutBench,
  checkoutBench as bench,
  extra,
  localConnection,
  sync,
} from "./checkout-bench.ts";

const library = "checkout/packages/bootstrap/extra/cluster_internal_utils";
const own = "opt/packages/tests--1";

const source = (place: CheckoutBench, path: string): string =>
  join(place.checkout, "..", extra, path);
const remove = (path: string): Promise<void> => rm(path, { recursive: true });

/** Syncs, compares the tests on the node, and expects a further sync to change nothing, with a single command. */
async function expectTests(place: CheckoutBench, expected: readonly string[]): Promise<void> {
  await sync(place);
  expect(await place.tree(place.tests)).toEqual([...expected]);
  const connection = localConnection();
  const commands: string[] = [];
  const run: typeof connection.run = (command, signal) => {
    commands.push(command.argv[3] ?? "");
    return connection.run(command, signal);
  };
  expect(await sync(place, { ...connection, run })).toMatchObject({ sentFiles: 0 });
  expect(commands).toEqual(["e2e-sync-state"]);
}

test("files that were removed from the checkout are removed from the node, in all folders and of all kinds", async () => {
  await using place = await bench("oss");
  for (const path of [
    "data.json",
    "a/test_a.py",
    "a/data.json",
    "a/b/c/deep.txt",
    "only/here.txt",
    "-odd\nname/x y",
  ])
    await place.write(`${extra}/${path}`, path);
  await sync(place);
  for (const path of ["data.json", "a/data.json", "a/b", "only", "-odd\nname"])
    await remove(source(place, path));
  await expectTests(place, ["./a/test_a.py", "./data/kept.txt", "./test_new.py"]);
  expect(await Bun.$`find . -type d`.cwd(place.tests).text()).not.toMatch(/only|odd|\/b/);
});

test("a folder of the checkout is alike on the node, although the installation has brought other files", async () => {
  await using place = await bench("oss");
  await place.write(`${own}/a/test_gone.py`, "gone");
  await place.write(`${own}/a/deeper/data.json`, "gone");
  await symlink("/etc/hostname", join(place.tests, "a/link"));
  await place.write(`${extra}/a/test_a.py`, "a");
  await expectTests(place, ["./a/test_a.py", "./data/kept.txt", "./test_new.py"]);
});

test("files that the node has had from its installation count as sent if the checkout has them", async () => {
  await using place = await bench("oss");
  await place.write(`${own}/data/kept.txt`, "kept");
  await place.write(`${own}/top.json`, "top");
  await place.write(`${extra}/top.json`, "top");
  await sync(place);
  await remove(source(place, "top.json"));
  await expectTests(place, ["./data/kept.txt", "./test_new.py"]);
});

test("folders become files, files become folders, and links become either", async () => {
  await using place = await bench("oss");
  await place.write("opt/elsewhere/precious.txt", "precious");
  const states: readonly (readonly string[])[] = [
    ["x/one.py", "x/deep/two.txt", "y", "z/w"],
    ["x", "y/one.txt", "z/w/v"],
    ["x/deep/two.txt", "y", "z"],
  ];
  for (const paths of states) {
    await rm(source(place, ""), { recursive: true });
    for (const path of paths) await place.write(`${extra}/${path}`, `${path} again`);
    await expectTests(place, ["data/kept.txt", ...paths].map((path) => `./${path}`).toSorted());
  }
  for (const name of ["x", "y"]) {
    await rm(join(place.tests, name), { recursive: true });
    await symlink("../../elsewhere", join(place.tests, name));
  }
  await expectTests(place, ["./data/kept.txt", "./x/deep/two.txt", "./y", "./z"]);
  expect(await readFile(join(place.tests, "../../elsewhere/precious.txt"), "utf8")).toBe(
    "precious",
  );
});

test("a folder of the node that is in a file's way is replaced", async () => {
  await using place = await bench("oss");
  await mkdir(join(place.tests, "test_new.py"));
  await expectTests(place, ["./data/kept.txt", "./test_new.py"]);
});

test("the library loses what the checkout has lost, and keeps what only the installation has", async () => {
  await using place = await bench("oss");
  for (const path of ["new.py", "sub/one.py", "sub/two.py"])
    await place.write(`${library}/${path}`, path);
  await sync(place);
  expect(await place.tree(place.library)).toEqual([
    "./kept.py",
    "./new.py",
    "./sub/one.py",
    "./sub/two.py",
  ]);
  const folder = join(place.checkout, "..", library);
  await remove(join(folder, "sub"));
  await place.write(`${library}/sub`, "a file");
  await expectTests(place, ["./data/kept.txt", "./test_new.py"]);
  expect(await place.tree(place.library)).toEqual(["./kept.py", "./new.py", "./sub"]);
  await remove(folder);
  await expectTests(place, ["./data/kept.txt", "./test_new.py"]);
  expect(await place.tree(place.library)).toEqual(["./kept.py"]);
});

test("open source tests beside an enterprise cluster's own lose what their checkout has lost", async () => {
  await using place = await bench("enterprise");
  for (const path of ["a/one.txt", "a/two.txt", "top.json", "util/tool.py"])
    await place.write(`${extra}/${path}`, path);
  await sync(place);
  for (const path of ["a/two.txt", "top.json"]) await remove(source(place, path));
  const beside = [
    "./open_source_tests/a/one.txt",
    "./open_source_tests/test_new.py",
    "./test_old.py",
  ];
  await expectTests(place, ["./data/kept.txt", ...beside, "./util/tool.py"]);
  await remove(source(place, "util"));
  await expectTests(place, ["./data/kept.txt", ...beside]);
});

test("an enterprise checkout leaves alone what an open source one has sent, and the other way round", async () => {
  await using place = await bench("enterprise");
  await place.write(`${extra}/util/tool.py`, "tool");
  await sync(place);
  await place.write("checkout/packages/upstream.json", "{}");
  await remove(source(place, "util/tool.py"));
  await place.write(`${extra}/util/paid.py`, "paid");
  await place.write(`${extra}/paid/a.txt`, "paid");
  const both = ["./open_source_tests/test_new.py", "./paid/a.txt", "./test_new.py"];
  await expectTests(place, ["./data/kept.txt", ...both, "./util/paid.py", "./util/tool.py"]);
  await remove(join(place.checkout, "packages/upstream.json"));
  for (const path of ["util", "paid"]) await remove(source(place, path));
  await expectTests(place, ["./data/kept.txt", ...both, "./util/paid.py"]);
});

test("a sync that fails notes nothing that a later one would remove wrongly", async () => {
  await using place = await bench("oss");
  await place.write(`${extra}/a/data.json`, "data");
  await sync(place);
  await remove(source(place, "a/data.json"));
  await place.write(`${extra}/data/other.txt`, "other");
  expect(await sync(place, localConnection(600)).catch((error: unknown) => error)).toMatchObject({
    id: "transfer-failed",
  });
  expect(await place.tree(place.tests)).toEqual([
    "./a/data.json",
    "./data/kept.txt",
    "./test_new.py",
  ]);
  await remove(source(place, "data"));
  await expectTests(place, ["./data/kept.txt", "./test_new.py"]);
});

test("what others remove while it is read or copied does not fail a sync", async () => {
  await using place = await bench("oss");
  await place.write(`${extra}/test_one.py`, "one");
  // Real programs, which then say what they say if a folder vanishes.
  const vanished = (name: string, when: string): string =>
    `#!/bin/sh\n$(command -p -v ${name}) "$@" || exit\ncase $* in ${when}) echo "${name}: cannot access 'x': No such file or directory" >&2; exit 1 ;; esac\n`;
  const programs = join(place.checkout, "..", "programs");
  for (const [name, when] of [
    ["find", ".*-printf*"],
    ["cp", "-a*T\\ *"],
  ] as const) {
    await Bun.write(join(programs, name), vanished(name, when));
    await chmod(join(programs, name), 0o755);
  }
  const path = `${programs}:${process.env["PATH"]}`;
  const connection = localConnection();
  const run: typeof connection.run = ({ argv, ...command }, signal) =>
    connection.run({ ...command, argv: ["env", `PATH=${path}`, ...argv] }, signal);
  await sync(place, { ...connection, run });
  expect(await place.tree(place.tests)).toContain("./test_one.py");
  expect(await place.tree(place.tests)).toContain("./data/kept.txt");
});
