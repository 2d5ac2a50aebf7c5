/** The build renders help in advance. Other words are rendered when they are needed. Both must give the same text. */
import { expect, test } from "bun:test";
import { executablePath, run } from "./support/executable.ts";

const programs = ["cluster-cloud", "cluster-container", "cluster-vm"] as const;
const ask = async (
  program: (typeof programs)[number],
  words: readonly string[],
  environment = {},
) => run(program, words, { environment });

test.each(programs)("%s prints the same help, prepared or not", async (program) => {
  const prepared = await ask(program, ["--help"]);
  expect(prepared).toMatchObject({ status: 0, stderr: "" });
  expect(await ask(program, [])).toEqual(prepared);
  expect(await ask(program, ["-h"])).toEqual(prepared);
  const commands = [...prepared.stdout.matchAll(/^ {2}([a-z]+) /gm)].map(([, name = ""]) => name);
  expect(commands).toContain("create");
  for (const command of commands) {
    const help = await ask(program, [command, "--help"]);
    expect(help).toMatchObject({ status: 0, stderr: "" });
    expect(help.stdout).toStartWith(`Usage: ${program} ${command} `);
    expect(await ask(program, [command, "--help", "--help"])).toEqual(help);
  }
});

test("help fits a narrow terminal", async () => {
  const narrow = await ask("cluster-vm", ["--help"], { COLUMNS: "60" });
  expect(narrow.status).toBe(0);
  expect(Math.max(...narrow.stdout.split("\n").map(({ length }) => length))).toBeWithin(40, 61);
  const line = `stty cols 60; ${executablePath("cluster-vm")} list --help`;
  const { stdout } = Bun.spawnSync(["script", "-qec", line, "/dev/null"], { stdin: "ignore" });
  const lines = stdout.toString().split("\r\n");
  expect(lines[0]).toBe("Usage: cluster-vm list [OPTIONS]");
  expect(Math.max(...lines.map(({ length }) => length))).toBeWithin(40, 61);
});

test("a word that is no command has no help, whatever objects of the language are called", async () => {
  expect(await ask("cluster-vm", ["constructor", "--help"])).toMatchObject({
    status: 2,
    stdout: "",
  });
});
