import { unmarked } from "../../../../src/outside-text.ts";
import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "bun:test";
import type {
  EngineFacts,
  EngineName,
} from "../../../../src/backend/container/engine/engine-kind.ts";
import { engineKinds } from "../../../../src/backend/container/engine/engine-kinds.ts";
import {
  type ContainerFacts,
  judgeSelinux,
  volumeChecks,
} from "../../../../src/backend/container/host-checks.ts";
import { ClusterError } from "../../../../src/errors.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { outcomeText } from "../../../support/outcome-text.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

const { signal } = new AbortController();

interface Machine {
  /** The images that the engine lists. */
  readonly images?: string;
  readonly location?: EngineFacts["location"];
  readonly name?: EngineName;
  /** What the engine's container prints of a file. */
  readonly cat?: (file: string) => Promise<string>;
  readonly home: string;
}

const ownImages = "localhost/cluster-e2e-node:0123\n";

/** Tries to mount a folder of the home, and resolves with the outcome. */
async function tried({
  images = ownImages,
  location = "here",
  name = "docker",
  cat = async (file) => readFile(file, "utf8"),
  home,
}: Machine) {
  const ask = async ({ words }: { readonly words: readonly string[] }): Promise<string> => {
    if (words[0] === "images") return images;
    if (name === "podman") expect(words).toContain("--pids-limit=0");
    if (words.join(" ").includes("uid_map")) return "0 0 65536\n\n0 0 65536";
    const folder = /source=([^,]+),target=([^,]+),readonly/.exec(words.join(" "));
    return cat((words.at(-1) ?? "").replace(folder?.[2] ?? "", folder?.[1] ?? ""));
  };
  const facts = {
    // Doctor would wait for the end of a change.
    engine: async () => ({ kind: engineKinds[name], ask }),
    engineFacts: async () => ({ location }),
  } as unknown as ContainerFacts;
  const [mounts] = volumeChecks(facts, { HOME: home }, signal);
  return mounts.run(signal).then(outcomeText);
}

test("a folder of the home that a container reads is enough, and the trial leaves nothing there", async () => {
  await using home = await scratchFolder();
  expect(await tried({ home: home.path })).toBe(
    `pass: Containers can read this computer's folders, such as those in ${home.path}`,
  );
  expect(await readdir(home.path)).toEqual([]);
});

const onlyThere = "can only mount what is on the computer that Docker runs on";

test.each([
  ["here", "will not work", "The folders must be readable for root on this computer."],
  [
    "virtual-machine",
    "will not work",
    /^Share them with the virtual machine in which Docker runs\. /,
  ],
  ["elsewhere", onlyThere, /^Name folders of the computer that Docker runs on\. /],
  ["unknown", onlyThere, /^Name folders of the computer that Docker runs on\. /],
] as const)(
  "if a container can't read it on an engine that is %s, the remedy fits the engine",
  async (location, effect, remedy) => {
    await using home = await scratchFolder();
    const cat = async (): Promise<string> => {
      throw new ClusterError("engine-failed", "docker run failed: permission denied.");
    };
    const [problem, advice] = (await tried({ location, cat, home: home.path })).split(" → ");
    expect(problem).toBe(
      `warn: A container cannot read a folder in ${home.path}, so \`customVolumes\` ${effect}: docker run failed: permission denied.`,
    );
    expect(advice).toMatch(remedy);
    expect(await readdir(home.path)).toEqual([]);
  },
);

test("Podman's containers are tried without its own limit of processes", async () => {
  await using home = await scratchFolder();
  expect(await tried({ name: "podman", home: home.path })).toStartWith("pass: ");
});

test("a container that finds another file there is a warning, too", async () => {
  await using home = await scratchFolder();
  const text = await tried({ cat: async () => "another machine's note", home: home.path });
  expect(text).toContain("so `customVolumes` will not work: its content differs there.");
});

test("any other failure is a bug, and reported as one", async () => {
  await using home = await scratchFolder();
  const cat = async (): Promise<string> => Promise.reject(new TypeError("no such property"));
  expect((await failureOf(tried({ cat, home: home.path }))).message).toBe("no such property");
});

test.each([
  ["debian:12\n", "there is no node image until the first create builds one."],
  ["", "there is no node image until the first create builds one."],
])("with the images %j, nothing is tried", async (images, why) => {
  await using home = await scratchFolder();
  expect(await tried({ images, home: home.path })).toBe(`skip: Not checked: ${why}`);
});

test("the node image is found among other names", async () => {
  await using home = await scratchFolder();
  expect(await tried({ images: `debian:12\n${ownImages}`, home: home.path })).toStartWith("pass: ");
});

test("without a home that can be written to, nothing is tried", async () => {
  await using folder = await scratchFolder();
  const home = join(folder.path, "missing");
  expect(await tried({ home })).toBe(`skip: Not checked: cannot create a folder in ${home}.`);
});

test.each([
  ["engine", "skip: Not checked: nodes are not known to run on this computer."],
  ["direct", /^pass: (?:Not enforcing|Enforcing)/],
] as const)(
  "this computer's SELinux matters for nodes that are reached %s: %s",
  async (reach, expected) => {
    const facts = {
      engine: async () => ({}),
      engineFacts: async () => ({}),
      way: async () => ({ reach, why: "" }),
    };
    const [, selinux] = volumeChecks(facts as unknown as ContainerFacts, {}, signal);
    const text = outcomeText(await selinux.run(signal));
    if (typeof expected === "string") expect(text).toBe(expected);
    else expect(text).toMatch(expected);
  },
);

test.each([
  ["1\n", "Enforcing, but nodes are not confined by it: `customVolumes` needs no :z"],
  ["0\n", "Not enforcing"],
  [undefined, "Not enforcing"],
])(
  "what this computer's SELinux means for volumes is said where it says %j",
  (enforce, message) => {
    const outcome = judgeSelinux(enforce);
    expect(outcome.status).toBe("pass");
    expect(unmarked(outcome.message)).toContain(message);
  },
);
