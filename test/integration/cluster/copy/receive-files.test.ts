import { expect, test } from "bun:test";
import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import receiveFiles from "../../../../src/cluster/copy/receive-files.sh" with { type: "text" };
import { shellText } from "../../../../src/ssh/shell-text.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

test("a link in the place of the folder for the files leads nowhere", async () => {
  await using scratch = await scratchFolder();
  const at = (...names: string[]): string => join(scratch.path, ...names);
  for (const name of ["target", "victim", "victim/inner"]) await mkdir(at(name));
  const script = `
mktemp() { made=$(command mktemp "$@") && rmdir "$made" && ln -s ${at("victim/inner")} "$made" && echo "$made"; }
${shellText(receiveFiles)}`;
  const sent = `echo secret >${at("file")}; tar -C ${scratch.path} -c file`;
  const child = Bun.spawn(["sh", "-c", `${sent} | sh -c "$1" sh ${at("target")}`, "sh", script], {
    stderr: "pipe",
  });
  expect(await new Response(child.stderr).text()).toBe(
    "somebody else changes the folder at the same time\n",
  );
  expect(await child.exited).toBe(1);
  expect(await readdir(at("victim"))).toEqual(["inner"]);
  expect(await readdir(at("victim/inner"))).toEqual([]);
  expect(await readdir(at("target"))).toEqual([]);
});

test("if the disk is full, the last line says so, and nothing is left", async () => {
  await using scratch = await scratchFolder();
  const script = `
tar() { cat >/dev/null; echo 'tar: Exiting with failure status due to previous errors' >&2; return 2; }
stat() { case $1 in -f) echo 0 ;; *) command stat "$@" ;; esac; }
${shellText(receiveFiles)}`;
  const child = Bun.spawn(["sh", "-c", script, "sh", join(scratch.path, "target")], {
    stdin: Buffer.from("archive"),
    stderr: "pipe",
  });
  expect(await new Response(child.stderr).text()).toEndWith("\nno space is left on its disk\n");
  expect(await child.exited).toBe(2);
  expect(await readdir(join(scratch.path, "target"))).toEqual([]);
});
