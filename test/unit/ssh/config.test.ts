import { expect, test } from "bun:test";
import { renderSshConfig } from "../../../src/ssh/openssh-files.ts";
import { failureOf } from "../../support/failure-of.ts";
import { hostileTexts } from "../../support/hostile-text.ts";

const files = { identityFile: "/state/id_ed25519", knownHostsFile: "/state/known_hosts" };
const node = { id: "i-0", role: "master", index: 0, ssh: { host: "192.0.2.1", port: 22, user: "admin" } };

const refusal = async (change: object, changedFiles: object = {}) =>
  failureOf((async () => renderSshConfig([{ ...node, ...change }], { ...files, ...changedFiles }))());

test("a value with white space or a control character is refused, and shown so that it can be printed", async () => {
  const error = await refusal({ ssh: { ...node.ssh, user: "admin\n  ProxyCommand id" } });
  expect([error.id, error.message]).toEqual([
    "connection-failed",
    String.raw`Cannot pass the user "admin\n  ProxyCommand id" to ssh.`,
  ]);
  expect((await refusal({ ssh: { ...node.ssh, host: "192.0.2.1 x" } })).id).toBe("connection-failed");
  expect((await refusal({ role: "master x" })).id).toBe("connection-failed");
  expect((await refusal({}, { identityFile: "/state/a\rb" })).id).toBe("machine-not-set-up");
});

test("no value becomes another word or line of the configuration", () => {
  const lines = renderSshConfig([node], files).split("\n").length;
  for (const text of hostileTexts(11, 5000)) {
    for (const change of [{ ssh: { ...node.ssh, user: text } }, { ssh: { ...node.ssh, host: text } }, { role: text }]) {
      const rendered = attempt(() => renderSshConfig([{ ...node, ...change }], files));
      if (rendered === undefined || rendered === "") continue;
      expect(rendered.split(/[\n\r\u2028\u2029]/).length).toBe(lines);
      for (const key of ["Host", "HostName", "User"])
        expect(rendered).toMatch(new RegExp(String.raw`^ *${key} [A-Za-z0-9_.:][A-Za-z0-9_.:-]*$`, "m"));
    }
  }
});

function attempt(render: () => string): string | undefined {
  try {
    return render();
  } catch {
    return undefined;
  }
}
