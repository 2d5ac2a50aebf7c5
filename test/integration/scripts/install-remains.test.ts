/** What install.sh does with the remains of a killed installation that somebody else has changed. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { smallRelease } from "../../support/small-release.ts";

const tag = "2020.01.01.0";

test.each([
  ["a file outside", "echo bin/../../foreign >placed"],
  ["a file whose folder is elsewhere", "mkdir -p old/share/linked; echo >old/share/linked/foreign"],
  ["files of another folder", "rmdir old; ln -s ../../aside old"],
  ["a folder elsewhere", "echo $OLDPWD/empty >folders"],
])("remains that name %s are refused, and nothing is moved or removed", async (_, change) => {
  await using folder = await scratchFolder();
  const sh = async (lines: string) => {
    const child = Bun.spawn(["sh", "-c", `exec 2>&1\n${lines}`], {
      cwd: folder.path,
      env: { PATH: process.env.PATH, TMPDIR: join(folder.path, "tmp") },
      stdout: "pipe",
    });
    const output = await new Response(child.stdout).text();
    return { status: await child.exited, output };
  };
  const census =
    "find prefix outside empty aside tmp foreign | sort; cat */foreign aside/*/* foreign";
  const platform = `${process.platform}-${process.arch}`;
  await smallRelease(folder.path, tag, { cloud: "" }, { platform });
  await sh(`mkdir -p tmp outside empty aside/bin prefix/share prefix/.cluster-e2e-installing/old
    for each in . outside aside/bin; do echo mine >$each/foreign; done
    ln -s ../../outside prefix/share/linked
    cd prefix/.cluster-e2e-installing && ${change}`);
  const before = await sh(census);
  for (const option of ["", "--uninstall"]) {
    const { status, output } = await sh(`sh ${tag}/install.sh --prefix prefix ${option}`);
    expect(output).toContain("/prefix/.cluster-e2e-installing lists ");
    expect(status).toBe(1);
    expect(await sh(census)).toEqual(before);
  }
});
