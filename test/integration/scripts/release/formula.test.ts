/** The Homebrew formula, evaluated by Ruby with stand-ins for Homebrew's methods. */
import { expect, test } from "bun:test";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { formula } from "../../../../scripts/release/formula.ts";
import { platforms } from "../../../../scripts/release/platforms.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

const lack = Bun.which("ruby") === null ? "ruby is not here" : undefined;
const repository = "https://git.example.com/cluster-e2e.git";
const facts = {
  tag: "2026.03.09.0",
  description: 'Creates "test" clusters #{1}',
  repository,
  archives: platforms.map((platform) => ({
    platform,
    url: `https://example.com/${platform.name}`,
    sha256: platform.name,
  })),
  programs: ["cluster-cloud", "cluster-other"],
};

async function ruby(words: readonly string[], cwd: string): Promise<string> {
  const child = Bun.spawn(["ruby", ...words], { cwd, stdout: "pipe", stderr: "pipe" });
  const [status, stdout, stderr] = await Promise.all([
    child.exited,
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  if (status !== 0) throw new Error(`ruby ${words.join(" ")} ended with ${status}:\n${stderr}`);
  return stdout;
}

/** What the formula does in a folder with these files. */
async function evaluated(files: readonly string[], words: readonly string[]): Promise<unknown> {
  await using folder = await scratchFolder();
  await Bun.write(join(folder.path, "cluster-e2e.rb"), formula(facts));
  expect(await ruby(["-wc", "cluster-e2e.rb"], folder.path)).toBe("Syntax OK\n");
  await mkdir(join(folder.path, "inside"));
  for (const file of files) await Bun.write(join(folder.path, "inside", file), "");
  const harness = join(import.meta.dir, "formula.rb");
  return JSON.parse(
    await ruby([harness, "../cluster-e2e.rb", ...words], join(folder.path, "inside")),
  );
}

const shared = (top: string): readonly string[] => [
  `${top}/man/man1/cluster-cloud.1`,
  `${top}/bash-completion/completions/cluster-cloud`,
  `${top}/zsh/site-functions/_cluster-cloud`,
  `${top}/fish/vendor_completions.d/cluster-cloud.fish`,
  `${top}/doc/cluster-e2e/LICENSE`,
];

const installs = (programs: readonly string[], top: string): object => {
  const [man1, bash, zsh, fish, doc] = shared(top).map((path) => [path]);
  return {
    bin: programs,
    man1,
    bash_completion: bash,
    zsh_completion: zsh,
    fish_completion: fish,
    doc,
  };
};

const asked = ["/bin/cluster-cloud --version", "/bin/cluster-other --version"];

test.skipIf(lack !== undefined).each([
  ["macos", "arm", "darwin-arm64"],
  ["macos", "intel", "darwin-x64"],
  ["linux", "arm", "linux-arm64"],
  ["linux", "intel", "linux-x64"],
])(
  `Homebrew on %s %s installs the files of %s (${lack ?? "ruby is here"})`,
  async (system, processor, platform) => {
    const programs = ["bin/cluster-cloud", "bin/cluster-other"];
    expect(await evaluated([...programs, ...shared("share")], [system, processor])).toEqual({
      desc: facts.description,
      homepage: "https://git.example.com/cluster-e2e",
      version: facts.tag,
      license: "Apache-2.0",
      depends_on: [],
      url: [`https://example.com/${platform}`, {}],
      sha256: platform,
      commands: [],
      installs: installs(programs, "share"),
      asked,
    });
  },
);

// Shows R12.
test.skipIf(lack !== undefined)(
  "Homebrew builds the head with the Bun and the packages that bun.lock pins",
  async () => {
    const files = ["dist/cluster-cloud", "dist/cluster-other", ...shared("dist/share")];
    expect(await evaluated(files, ["linux", "intel", "head"])).toMatchObject({
      depends_on: [],
      url: [repository, { branch: "main" }],
      commands: [
        ["scripts/pinned-bun", "pinned"],
        ["pinned/bun", "install", "--frozen-lockfile", "--ignore-scripts"],
        ["pinned/bun", "scripts/build.ts"],
        ["pinned/bun", "scripts/documents.ts", "dist"],
      ],
      installs: installs(["dist/cluster-cloud", "dist/cluster-other"], "dist/share"),
      asked,
    });
  },
);

// https://docs.brew.sh/Formula-Cookbook#audit-the-formula: the rules of `brew style` and `brew audit --strict` that concern this formula.
test("the formula follows Homebrew's style", async () => {
  const { description } = (await Bun.file(
    join(import.meta.dir, "..", "..", "..", "..", "package.json"),
  ).json()) as {
    readonly description: string;
  };
  expect(description.length).toBeLessThanOrEqual(80);
  expect(description).toMatch(/^(?!An? |The |cluster-e2e)[A-Z].*[^.]$/i);
  const text = formula({ ...facts, description });
  const lines = text.split("\n").filter((line) => !/^ *url "/.test(line));
  expect(lines.filter((line) => line.length > 118 || /\s$/.test(line))).toEqual([]);
  expect(text).not.toMatch(/"npm", "install"(?!.*std_npm_args)/);
  expect(text).not.toMatch(/\.git".*using: :git/);
  expect(text).not.toMatch(/homepage ".*\.git"/);
  expect(text).not.toContain("\n\n\n");
  expect(text).toMatch(/[^\n]\n$/);
});
