import { spawn } from "node:child_process";
import { expect, test } from "bun:test";
import {
  renderSessionScript,
  type SessionSettings,
} from "../../../../src/ssh/session/session-line.ts";

const missingFolderHint = "Make it.";
const bare: SessionSettings = {
  whenExists: undefined,
  environmentFile: undefined,
  variables: {},
  workingDirectory: undefined,
};

test("one word is a shell line, in the home directory", () => {
  expect(renderSessionScript({ settings: [bare], words: ["echo 'a' | wc"], missingFolderHint }))
    .toMatchInlineSnapshot(`
    "if :; then
    cd
    fi
    trap : INT
    ( eval 'echo '\\''a'\\'' | wc' )
    exit $?
    "
  `);
});

test("several words stand as they are, in the settings that fit the node", () => {
  const first: SessionSettings = {
    whenExists: "/opt/first",
    environmentFile: "/opt/first/environment export",
    variables: { A: "it's", B: "" },
    workingDirectory: "/opt/first/tests",
  };
  expect(
    renderSessionScript({
      settings: [first, bare],
      words: ["pytest", "-k", "a or b"],
      missingFolderHint,
    }),
  ).toMatchInlineSnapshot(`
    "if [ -e /opt/first ]; then
    if [ -r '/opt/first/environment export' ]; then . '/opt/first/environment export'; fi
    export A='it'\\''s'
    export B=''
    cd -- /opt/first/tests 2>/dev/null || { echo 'The folder /opt/first/tests does not exist on this node. Make it.' >&2; exit 255; }
    elif :; then
    cd
    fi
    trap : INT
    ( pytest -k 'a or b' )
    exit $?
    "
  `);
});

test.each(["bash", "sh"])(
  "in %s, Ctrl-C ends the command with 130, unless it has a status of its own",
  async (shell) => {
    const interrupted = async (line: string) => {
      const script = renderSessionScript({ settings: [], words: [line], missingFolderHint });
      // As on a terminal, the whole group gets the signal.
      const child = spawn(shell, ["-c", script], {
        detached: true,
        stdio: ["ignore", "pipe", "ignore"],
      });
      const ended = new Promise<unknown>((resolve) =>
        child.once("exit", (code, signal) => resolve(code ?? signal)),
      );
      await new Promise((resolve) => child.stdout.once("data", resolve));
      // Bash loses a signal that comes while it starts a program.
      await Bun.sleep(300);
      process.kill(-child.pid!, "SIGINT");
      const status = await ended;
      // What runs in the background ignores the signal.
      await Bun.$`kill -KILL -- -${child.pid}`.quiet().nothrow();
      return status;
    };
    expect(await interrupted("echo up; sleep 60; echo not this; exit 9")).toBe(130);
    expect(await interrupted("echo up; while :; do :; done")).toBe(130);
    // The nodes' shell is bash where there is one.
    if (shell === "bash")
      expect(await interrupted(`${shell} -c 'trap "exit 7" INT; echo up; sleep 60 & wait'`)).toBe(
        7,
      );
  },
);

test("a bad name is refused", () => {
  const settings = [{ ...bare, variables: { "1A": "x" } }];
  expect(() => renderSessionScript({ settings, words: ["id"], missingFolderHint })).toThrow(
    '"1A" is not a name for an environment variable',
  );
});
