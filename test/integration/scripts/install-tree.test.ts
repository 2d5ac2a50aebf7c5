/** What scripts/install-clone has built, installed by install.sh; and what install.sh prints of a URL. */
import { expect, test } from "bun:test";
import { serveOnLoopback } from "../../support/loopback-server.ts";
import { installed, newer, older, place, platform } from "./install-place.ts";

test("a tree that a clone has built replaces a release, for everyone, whatever the umask, and a removal leaves nothing", async () => {
  await using here = await place();
  const tree = `trees/cluster-e2e-${newer}-${platform}`;
  await here.sh(installed(older));
  const { status, output } = await here.sh(
    `umask 077; chmod -R go= ${tree}; sh ${older}/install.sh --prefix prefix --tree ${tree}`,
  );
  expect([status, output]).toEqual([
    0,
    expect.stringContaining(`${here.prefix}/bin/cluster-cloud\n${here.prefix}/bin/cluster-vm\n`),
  ]);
  expect((await here.sh("prefix/bin/cluster-cloud; find prefix ! -perm -a+r")).output).toBe(
    `${newer}\n`,
  );
  expect(await here.census()).not.toContain("/cluster-older");
  await here.sh(`${installed(older)} --uninstall`);
  expect(await here.census()).toBe("");
});

test("the password in a release's URL is not printed", async () => {
  await using here = await place();
  await here.program("curl", "exit 22");
  const from = "https://me:geheim@127.0.0.1:1/releases";
  const { output } = await here.sh(`${installed(newer)} --from ${from}`);
  expect(output).toContain("cannot download https://127.0.0.1:1/releases/SHA256SUMS");
  expect(output).not.toContain("geheim");
});

test.skipIf(process.platform !== "linux")(
  "checksums without an end are not taken, from a server or a folder, and nobody waits for a pipe",
  async () => {
    await using here = await place();
    const seen = { megabytes: 0 };
    using server = serveOnLoopback(() => {
      const pull = (controller: ReadableStreamDefaultController): void => {
        seen.megabytes += 1;
        if (seen.megabytes < 100) controller.enqueue(Buffer.alloc(1024 * 1024, "x"));
        else controller.close();
      };
      return new Response(new ReadableStream({ pull }));
    });
    await here.sh("mkdir zeros pipe && mkfifo pipe/SHA256SUMS && ln -s /dev/zero zeros/SHA256SUMS");
    for (const from of [server.url.href, "zeros", "pipe"]) {
      const { status, output } = await here.sh(
        `(ulimit -f 200000; exec timeout 60 ${installed(newer)} --from ${from})`,
      );
      expect([from, status]).toEqual([from, 1]);
      expect(output).toMatch(/install.sh: cannot download .*SHA256SUMS\n$/);
      expect([from, await here.census()]).toEqual([from, ""]);
    }
    expect(seen.megabytes).toBeLessThan(50);
  },
);
