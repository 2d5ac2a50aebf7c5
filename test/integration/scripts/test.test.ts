/** scripts/test, with a stand-in for Bun that plays the tiers. */
import { expect, test } from "bun:test";
import { chmod, copyFile, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { scratchFolder } from "../../support/scratch-folder.ts";

const root = join(import.meta.dir, "..", "..", "..");

/** A file TIER.passes lets that tier pass. Other calls, such as that of the build, do nothing. */
const bun = `#!/bin/sh
case $* in
  --version) echo 9.9.9 ;;
  'run scripts/check.ts') [ -e check.passes ] && echo 'check: 2 passed, 0 failed' || echo 'check: 1 passed, 1 failed' ;;
  'scripts/test-tier.ts '*) echo '1 0 0' ;;
  test/faults/main.ts*) [ -e faults.passes ] && echo '2 of 2 faults survived;' || echo '1 of 2 faults survived;' ;;
esac
`;

async function makeCheckout() {
  const folder = await scratchFolder();
  const file = (name: string): string => join(folder.path, name);
  await mkdir(file("scripts"));
  for (const name of ["test", "environment.sh"])
    await copyFile(join(root, "scripts", name), file(`scripts/${name}`));
  const programs = { "scripts/setup": "", "scripts/docker-daemon": "", "bin/bun": bun };
  for (const [name, text] of Object.entries(programs)) {
    await Bun.write(file(name), text === "" ? "#!/bin/sh\n" : text);
    await chmod(file(name), 0o755);
  }
  await Bun.write(file("package.json"), '{\n  "bun": "9.9.9"\n}\n');
  const run = async (...words: readonly string[]) => {
    const child = Bun.spawn(["sh", file("scripts/test"), ...words], {
      env: { PATH: `${file("bin")}:/usr/bin:/bin`, HOME: folder.path, TMPDIR: folder.path },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const [stdout, stderr] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
    ]);
    return { status: await child.exited, stdout, stderr };
  };
  return { file, run, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() };
}

test.each(["check", "faults"])(
  "%s that failed runs again, although no file of tests failed, until it passes",
  async (tier) => {
    await using checkout = await makeCheckout();
    for (const words of [[tier], ["--again"]]) {
      const failed = await checkout.run(...words);
      expect(failed.status).toBe(1);
      expect(failed.stdout).toContain("./scripts/test --again");
      expect(await Bun.file(checkout.file(`dist/failed-tests/${tier}.log`)).text()).toContain("1 ");
    }
    await Bun.write(checkout.file(`${tier}.passes`), "");
    const passed = await checkout.run("--again");
    expect(passed.status).toBe(0);
    expect(passed.stderr).toContain(`== ${tier}`);
    expect((await checkout.run("--again")).stderr).toContain("nothing that can run again failed");
  },
);
