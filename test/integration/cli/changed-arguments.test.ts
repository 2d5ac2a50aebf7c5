/** Arguments with bytes that aren't UTF-8 are refused, because the runtime has changed them. */
import { join } from "node:path";
import { expect, test } from "bun:test";

const program = join(import.meta.dir, "../../../src/bin/cluster-container.ts");

/** printf makes the bytes of the last argument. */
async function run(format: string, words: string) {
  const child = Bun.spawn(
    ["sh", "-c", `exec "$0" "$1" ${words} "$(printf "$2")"`, process.execPath, program, format],
    {
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  return { stderr: await new Response(child.stderr).text(), status: await child.exited };
}

test.each(["run -c none -- echo", "list -c", "destroy"])(
  "%s: bytes that aren't UTF-8 are an error of usage",
  async (words) => {
    const { status, stderr } = await run("a\\377b", words);
    expect(status).toBe(2);
    expect(stderr.replaceAll(/\s+/g, " ")).toContain("some bytes are not UTF-8");
  },
);

test.skipIf(process.platform !== "linux")(
  "the character that stands for such bytes may be typed",
  async () => {
    const { stderr } = await run("a\\357\\277\\275b", "list --no-such-option");
    expect(stderr).not.toContain("UTF-8");
    expect(stderr).toContain("no-such-option");
  },
);
