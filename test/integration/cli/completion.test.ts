/** The completion scripts, asked by the shells that they are for. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { runShell } from "./start-example.ts";

const lines = [
  ["example ", "greet people fail big hold steps secret child completion --help -h --version --licenses"],
  ["example gr", "greet"],
  ["example greet --t", "--times --tone"],
  ["example greet --tone ", "warm cold"],
  ["example greet --tone = w", "warm"],
  ["example greet -v --times 3 --tone warm A", "Ada Alan"],
  ["example greet --license /etc/host.c", "/etc/host.conf"],
  ["example completion z", "zsh"],
  ["example child ls --f", ""],
  ["example child --f", "--file"],
  ["example nonsense --f", ""],
] as const;

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

test("what the program prints is offered, never executed", async () => {
  await using folder = await scratchFolder();
  const trace = join(folder.path, "executed");
  const script = `
    eval "$($EXAMPLE completion bash)"
    example() { printf '%s\\n' 'A$(touch ${trace})' 'A\`touch ${trace}\`'; }
    COMP_WORDS=(example greet A); COMP_CWORD=2; _example; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout } = await runShell(script);
  expect(stdout).toBe(`A$(touch ${trace})\nA\`touch ${trace}\`\n`);
  expect(await Bun.file(trace).exists()).toBe(false);
});

test.skipIf(Bun.which("fish") === null)("fish completes commands and values", async () => {
  const ask = "complete -C 'example gr'; complete -C 'example greet --tone '";
  const { stdout } = await runShell(`$EXAMPLE completion fish | fish --no-config -c "source; ${ask}"`);
  expect(stdout).toBe("greet\tGreets people\ncold\tThe tone\nwarm\tThe tone\n");
});

test.skipIf(Bun.which("zsh") === null)("zsh accepts the script", async () => {
  expect(await runShell("$EXAMPLE completion zsh | zsh -n")).toMatchObject({ exitCode: 0, stderr: "" });
});
