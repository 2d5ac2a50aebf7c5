/** The completion scripts, tested in real shells. */
import { describe, expect, test } from "bun:test";
import { chmod, copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { completionScript } from "../../../src/cli/completion.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { runShell } from "./start-example.ts";

const lines = [
  [
    "example ",
    "greet people fail big hold steps secret ask child completion --help -h --version --licenses",
  ],
  ["example gr", "greet"],
  ["example greet --t", "--times --tone"],
  ["example greet --tone ", "warm cold"],
  ["example greet --tone = w", "warm"],
  // Neither a file nor anything else to list.
  ["example greet --times ", ""],
  ["example greet -v --times 3 --tone warm A", "Ada Alan"],
  ["example greet --license /etc/host.c", "/etc/host.conf"],
  ["example completion z", "zsh"],
  ["example child ls --f", ""],
  ["example child --f", "--file"],
  ["example child --file = /etc/host.c", "/etc/host.conf"],
  ["example child -- --f", ""],
  ["example greet --tone warm --t", "--times"],
  ["example greet --verbose --v", "--verbose"],
  ["example greet --tome ", ""],
  ["example greet -vx A", "Ada Alan"],
  ["example greet --since = now A", "Anna"],
  ["example nonsense --f", ""],
] as const;

// Shows R20.
test.each(lines)("bash completes %j", async (line, expected) => {
  const script = `
    example() { $EXAMPLE "$@"; }
    eval "$(example completion bash)"
    IFS=' ' read -ra COMP_WORDS <<<"$1"
    case "$1" in *' ') COMP_WORDS+=('') ;; esac
    COMP_CWORD=$((\${#COMP_WORDS[@]} - 1))
    _example
    echo "\${COMPREPLY[*]}"`;
  const { stdout, stderr } = await runShell(`set -- '${line}'; ${script}`);
  expect({ stdout, stderr }).toEqual({ stdout: `${expected}\n`, stderr: "" });
});

test("the program's output is offered, never executed", async () => {
  await using folder = await scratchFolder();
  const trace = join(folder.path, "executed");
  const script = `
    eval "$($EXAMPLE completion bash)"
    example() { printf '%s\\n' 'A$(touch ${trace})' 'A\`touch ${trace}\`'; }
    COMP_WORDS=(example greet A); COMP_CWORD=2; _example; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout } = await runShell(script);
  expect(stdout).toBe(`A\\$\\(touch\\ ${trace}\\)\nA\\\`touch\\ ${trace}\\\`\n`);
  expect(await Bun.file(trace).exists()).toBe(false);
});

test.each(["example greet ex", "example greet example :", "example greet example : e"])(
  "bash replaces only what follows a colon (%s)",
  async (line) => {
    const script = `
      eval "$($EXAMPLE completion bash)"
      example() { printf '%s\\n' words example:etcd; }
      COMP_WORDS=(${line}); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); _example; echo "\${COMPREPLY[*]}"`;
    const { stdout } = await runShell(script);
    expect(stdout).toBe(line.includes(":") ? "etcd\n" : "example:etcd\n");
  },
);

const shells = [
  ["bash", ["--norc", "--noprofile", "-i"], 'eval "$(example completion bash)"', "completion"],
  [
    "zsh",
    ["-f", "-i"],
    "autoload -U compinit; compinit -D -u; source <(example completion zsh)",
    "Runs a child",
  ],
  ["fish", ["--no-config", "-i"], "example completion fish | source", "Runs a child"],
] as const;

describe.each(shells)("%s, on a terminal", (shell, words, setup, listed) => {
  const testShell = test.skipIf(Bun.which(shell) === null);

  // Shows R20.
  testShell("completes commands, options, their values and what the program lists", async () => {
    await using typist = await openShell(shell, words, setup);
    await typist.type("example gre\t --to\t war\t Al\t\r", "Hello Alan, warm");
    await typist.type("example gre\t --tone=co\t G\t\r", "Hello Grace, cold");
  });

  testShell("offers an option again only where it may be repeated", async () => {
    await using typist = await openShell(shell, words, setup);
    await typist.type(
      "example greet --verb\t --verb\t --tone warm --ti\t 2 Ada; echo do''ne\r",
      "done",
    );
    expect(typist.seen()).toContain("Hello Ada, warm");
    // No other option than --tone begins like this, and it has already been given.
    await typist.type("example greet --tone warm Ada --ton\t; echo do''ne\r", "done");
    expect(typist.seen()).toContain("--ton: no such option");
  });

  testShell("lists what a word may become", async () => {
    await using typist = await openShell(shell, words, setup);
    await typist.type("example c\t\t", listed);
  });

  testShell(
    "completes files where an option takes one, and nothing in another program's words",
    async () => {
      await using typist = await openShell(shell, words, setup);
      await writeFile(join(typist.folder, "some file"), "");
      await typist.type("example child --file some\t echo --fi\t one; echo do''ne\r", "done");
      expect(await readFile(join(typist.folder, "some file"), "utf8")).toBe(
        '["echo","--fi","one"]',
      );
      await typist.type("example child --file=some\t echo two; echo do''ne\r", "done");
      expect(await readFile(join(typist.folder, "some file"), "utf8")).toBe('["echo","two"]');
    },
  );

  testShell("completes a command although a folder has its name", async () => {
    await using typist = await openShell(shell, words, setup);
    await mkdir(join(typist.folder, "greet"));
    await typist.type("example gre\t--tone warm Ada; echo do''ne\r", "done");
    expect(typist.seen()).toContain("Hello Ada");
  });

  testShell("executes nothing that the program lists", async () => {
    await using typist = await openShell(shell, words, setup);
    const printing = "printf 'words\\nA$(touch trace)\\n'";
    await typist.type(`${shell === "fish" ? `function example; ${printing}; end` : `example() { ${printing}; }`}; echo de''fined\r`, "defined"); // prettier-ignore
    await typist.type("example greet A\t\recho do''ne\r", "done");
    expect(await Bun.file(join(typist.folder, "trace")).exists()).toBe(false);
  });
});

test.skipIf(Bun.which("zsh") === null)(
  "zsh completes from the first Tab on if the script is in a folder of $fpath",
  async () => {
    await using typist = await openShell("zsh", ["-f", "-i"], "fpath=($PWD/functions $fpath)");
    await mkdir(join(typist.folder, "functions"));
    const script = completionScript("my-example", "zsh");
    await writeFile(join(typist.folder, "functions", "_my-example"), script);
    await copyFile(join(typist.folder, "example"), join(typist.folder, "my-example"));
    await typist.type("autoload -U compinit; compinit -D -u; echo re''ady\r", "ready");
    await typist.type("my-example gre\t --tone warm Ada\r", "Hello Ada");
  },
);

/** A shell in a new folder, with the example program installed and its completion set up. */
async function openShell(shell: string, words: readonly string[], setup: string) {
  const scratch = await scratchFolder();
  const program = join(import.meta.dir, "example-program.ts");
  await writeFile(
    join(scratch.path, "example"),
    `#!/bin/sh\nexec '${process.execPath}' '${program}' "$@"\n`,
  );
  await chmod(join(scratch.path, "example"), 0o755);
  const PATH = `${scratch.path}:${process.env["PATH"] ?? ""}`;
  const terminal = await openTerminal([shell, ...words], scratch.path, {
    PATH,
    HOME: scratch.path,
    XDG_RUNTIME_DIR: scratch.path,
    PS1: "$ ",
  });
  await terminal.type(`${setup}; echo set''up\r`, "setup");
  return {
    folder: scratch.path,
    type: terminal.type,
    seen: terminal.seen,
    [Symbol.asyncDispose]: async () => {
      await terminal.close();
      await scratch[Symbol.asyncDispose]();
    },
  };
}

async function openTerminal(
  argv: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string>>,
) {
  const seen = { text: "" };
  const child = Bun.spawn([...argv], {
    cwd,
    env: { TERM: "xterm", ...env },
    terminal: {
      cols: 100,
      rows: 24,
      data: (_, bytes) => void (seen.text += Buffer.from(bytes).toString()),
    },
  });
  return {
    /** Resolves when the text has been shown since then. */
    type: async (keys: string, awaited: string): Promise<void> => {
      seen.text = "";
      child.terminal?.write(keys);
      for (const end = Date.now() + 20_000; !seen.text.includes(awaited); await Bun.sleep(10))
        if (Date.now() > end) throw new Error(`${argv[0]} didn't show ${JSON.stringify(awaited)}: ${JSON.stringify(seen.text)}`); // prettier-ignore
    },
    seen: (): string => seen.text,
    close: async (): Promise<void> => {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}
