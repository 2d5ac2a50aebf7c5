import { expect, test } from "bun:test";
import { renderSessionScript, type SessionSettings } from "../../../../src/ssh/session/session-line.ts";

const missingFolderHint = "Make it.";
const bare: SessionSettings = {
  whenExists: undefined,
  environmentFile: undefined,
  variables: {},
  workingDirectory: undefined,
};

test("one word is a shell line, in the home directory", () => {
  expect(renderSessionScript({ settings: [bare], words: ["echo 'a' | wc"], missingFolderHint })).toMatchInlineSnapshot(`
    "if :; then
    cd
    fi
    eval 'echo '\\''a'\\'' | wc'
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
  expect(renderSessionScript({ settings: [first, bare], words: ["pytest", "-k", "a or b"], missingFolderHint }))
    .toMatchInlineSnapshot(`
    "if [ -e /opt/first ]; then
    if [ -r '/opt/first/environment export' ]; then . '/opt/first/environment export'; fi
    export A='it'\\''s'
    export B=''
    cd -- /opt/first/tests 2>/dev/null || { echo 'The folder /opt/first/tests does not exist on this node. Make it.' >&2; exit 255; }
    elif :; then
    cd
    fi
    pytest -k 'a or b'
    exit $?
    "
  `);
});

test("a bad name is refused", () => {
  const settings = [{ ...bare, variables: { "1A": "x" } }];
  expect(() => renderSessionScript({ settings, words: ["id"], missingFolderHint })).toThrow(
    '"1A" is not a name for an environment variable',
  );
});
