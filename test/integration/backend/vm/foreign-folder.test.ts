/** A state folder in which root, or another user, has made a cluster. */
import { expect, test } from "bun:test";
import { chown, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { scratchFolder } from "../../../support/scratch-folder.ts";

const facts = join(import.meta.dir, "../../../../src/backend/vm/cluster-facts.ts");
const reading = `
const { readClusters } = await import(process.argv[1]);
console.log(JSON.stringify((await readClusters(process.argv[2])).map(({ facts }) => facts.clusterId)));
`;
const other = 65_534;
const isRoot = process.getuid?.() === 0 && Bun.which("setpriv") !== null;

test.skipIf(!isRoot)(
  "a cluster whose folder this user can't look into exists, since its machines may",
  async () => {
    await using scratch = await scratchFolder();
    const at = (...names: string[]): string => join(scratch.path, ...names);
    await mkdir(at("theirs-0123456789abcdef", "machines"), { recursive: true });
    await mkdir(at("empty-0123456789abcdef"));
    await chown(at("theirs-0123456789abcdef"), other, other);
    await Bun.$`chmod 700 ${at("theirs-0123456789abcdef")}`;
    const limited = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"];
    const argv = [...limited, process.execPath, "-e", reading, facts, scratch.path];
    const child = Bun.spawn(argv, { stdout: "pipe", stderr: "inherit" });
    expect(JSON.parse(await new Response(child.stdout).text())).toEqual(["theirs"]);
  },
);
