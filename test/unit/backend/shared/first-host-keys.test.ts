import { expect, test } from "bun:test";
import { hostKeyPerNode, hostKeyPerRole } from "../../../../src/backend/shared/first-boot.ts";
import { parseKey } from "../../../../src/ssh/keys.ts";

const [master, agent0, agent1] = [
  { role: "master", index: 0 },
  { role: "agent", index: 0 },
  { role: "agent", index: 1 },
] as const;

test("each node has a first host key of its own, and keeps it", () => {
  const keys = hostKeyPerNode();
  expect(new Set([master, agent0, agent1].map((node) => keys.of(node).publicKey)).size).toBe(3);
  expect(keys.of({ ...agent1 })).toBe(keys.of(agent1));
});

test("neither half of such a key has a comment, since some nodes keep it for good", async () => {
  const { publicKey, privateKey } = hostKeyPerNode().of(master);
  expect(publicKey).toMatch(/^ssh-ed25519 \S+$/);
  expect(await parseKey(privateKey)).toMatchObject({ comment: "" });
});

test("machines that are launched together share one; another role and another creation have others", () => {
  const keys = hostKeyPerRole();
  expect(keys.of(agent1)).toBe(keys.of(agent0));
  expect(keys.of(master).publicKey).not.toBe(keys.of(agent0).publicKey);
  expect(hostKeyPerRole().of(master).publicKey).not.toBe(keys.of(master).publicKey);
});
