/** Every command leaves the streams of its caller's shell as they were, so that the next program of a script can write to them. */
import { expect, test } from "bun:test";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { streamsLack, streamsScript } from "../support/blocking-streams.ts";
import { executablePath, run } from "./support/executable.ts";
import { temporaryFolder } from "./support/temporary-folder.ts";

/** Words that take a command past its options, where it fails without a cluster, an account or an artifact. */
const words: Readonly<Record<string, string>> = {
  create: "--variant oss /nonexistent",
  once: "--variant oss /nonexistent true",
  run: "true",
  sync: "/nonexistent",
  upgrade: "/nonexistent",
  import: "-",
  node: "stop master_0",
  snapshot: "list",
  templates: "list",
  pack: "/nonexistent /nonexistent/out",
  completion: "bash",
  fault: "list",
};

test.skipIf(streamsLack !== undefined).each(["cluster-cloud", "cluster-container", "cluster-vm"])(
  "%s: a cat into a slow pipe follows each command and writes everything, on streams that still block",
  async (program) => {
    await using folder = await temporaryFolder();
    await writeFile(join(folder.path, "file"), "x".repeat(140_000));
    const help = await run(program, ["--help"], { environment: {} });
    const commands = [...help.stdout.matchAll(/^ {2}([a-z]+) /gm)].map(([, name = ""]) => name);
    expect(commands).toContain("doctor");
    const lines = ["--version", "--help", "--licenses", "nonsense", ...commands].map((name) => {
      const line = `${executablePath(program)} ${name} ${words[name] ?? ""}`;
      return `{ ${line} </dev/null; report; cat file || echo "${name}" >>failed; } 2>&1 | { sleep 0.2; tail -c 140000 | tr -d x; }`;
    });
    const script = streamsScript("inherited", ["touch failed", ...lines].join("\n"));
    const child = Bun.spawn(["bash", "-c", script], {
      env: {
        PATH: process.env["PATH"] ?? "",
        HOME: folder.path,
        FOLDER: folder.path,
        REPORT: join(folder.path, "report"),
        AWS_EC2_METADATA_DISABLED: "true",
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    expect(await child.stdout.text()).toBe("");
    expect(await readFile(join(folder.path, "failed"), "utf8")).toBe("");
    const report = (await readFile(join(folder.path, "report"), "utf8")).trim().split("\n");
    expect(report.length).toBeGreaterThan(3 * commands.length);
    expect([...new Set(report)]).toEqual(["blocking"]);
  },
  300_000,
);
