/** Every command leaves the streams of its caller's shell as they were, so that the next program of a script can write to them. */
import { expect, test } from "bun:test";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { streamsLack, streamsScript } from "../support/blocking-streams.ts";
import { executablePath, run } from "./support/executable.ts";
import { temporaryFolder } from "./support/temporary-folder.ts";
import { nodeImage, startTestContainers } from "./support/test-containers.ts";

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
);

/** Commands on a cluster, each with what it prints on stdout. */
const onCluster = (
  id: string,
  folder: string,
): Readonly<Record<string, readonly [line: string, printed: string]>> => {
  const program = executablePath("cluster-container");
  const create = `--node-image ${nodeImage} --agents 1 ${join(import.meta.dir, "support", "meter")}`;
  return {
    create: [`${program} create -c ${id} ${create}`, `${id}\n`],
    wait: [`${program} wait -c ${id}`, ""],
    run: [`${program} run -c ${id} 'echo out; echo err >&2'`, "out\n"],
    "run with stdin": [`echo in | ${program} run -c ${id} cat`, "in\n"],
    "run on all nodes": [`${program} run -c ${id} --node all true`, ""],
    "run that fails": [`! ${program} run -c ${id} 'exit 3'`, ""],
    logs: [`${program} logs -c ${id} --output-dir ${folder}/logs`, `${folder}/logs\n`],
    library: [
      `${process.execPath} ${join(import.meta.dir, "example", "library-streams.ts")} ${id} 2>library`,
      "",
    ],
    once: [`${program} once -c ${id}-once ${create} -- echo once`, "once\n"],
    destroy: [`${program} destroy -c ${id} --yes`, `${id}\n`],
  };
};

test.skipIf(streamsLack !== undefined)(
  "commands on a cluster, and the library in another program, leave streams, umask and files of their caller alone",
  async () => {
    await using containers = await startTestContainers();
    const lines = onCluster(containers.id("streams"), containers.folder);
    // The engine's program makes stdout non-blocking by itself if it has the caller's.
    const script = Object.entries(lines).map(
      ([name, [line]]) =>
        `{ ${line}; } >out 2>>err && report && mv out 'out of ${name}' || echo '${name}' >>failed`,
    );
    const piped = Object.values(lines)
      .slice(2, 5)
      .map(
        ([line]) =>
          `{ ${line} </dev/null; report; cat file || echo cat >>failed; } 2>&1 | { sleep 0.2; tail -c 140000 | tr -d x; }`,
      );
    const all = [
      "umask 000; touch failed",
      ...script.slice(0, 5),
      ...piped,
      ...script.slice(5),
      "umask >umask",
    ];
    await writeFile(join(containers.folder, "file"), "x".repeat(140_000));
    const child = Bun.spawn(["bash", "-c", streamsScript("inherited", all.join("\n"))], {
      env: {
        PATH: process.env["PATH"] ?? "",
        HOME: containers.folder,
        ...containers.environment,
        FOLDER: containers.folder,
        REPORT: join(containers.folder, "report"),
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const read = (name: string): Promise<string> => readFile(join(containers.folder, name), "utf8");
    expect(await child.stdout.text()).toBe("");
    expect(await read("failed"), await read("err").catch(() => "")).toBe("");
    for (const [name, [, printed]] of Object.entries(lines))
      expect(await read(`out of ${name}`)).toBe(printed);
    expect(await read("library")).toBe("");
    expect([...new Set((await read("report")).trim().split("\n"))]).toEqual(["blocking"]);
    expect(await read("umask")).toBe("0000\n");
    // Whatever the umask allows, nobody else can write to what the programs keep.
    const open = Bun.spawn(["find", containers.stateFolder, "!", "-type", "l", "-perm", "/022"], {
      stdout: "pipe",
    });
    expect(await open.stdout.text()).toBe("");
  },
);
