/** What the faults say before they begin, of a node on which a program is missing. */
import { expect, test } from "bun:test";
import { faultRows } from "../../../../src/platform/faults/fault-kinds.ts";
import { shellText } from "../../../../src/ssh/shell-text.ts";

test.each([
  ["network", "tc", "tc is missing: install the package iproute2"],
  ["partition", "nft", "nft and iptables are missing: install the package nftables on the node"],
  ["io", "dmsetup", "dmsetup is missing: install the package dmsetup"],
] as const)("%s without %s", async (kind, program, text) => {
  const { default: file } = await faultRows[kind].script();
  const measured = async (isThere: boolean): Promise<string> => {
    const script = `${shellText(file, { ID: "", ADDRESS: "127.0.0.1", IO: "/" })}
command() { ${isThere}; }
tc() { echo netem; }
ip() { :; }
dmsetup() { false; }
measure`;
    const child = Bun.spawn(["sh", "-eu", "-c", script], { stdout: "pipe", stderr: "inherit" });
    return new Response(child.stdout).text();
  };
  expect(await measured(false)).toStartWith(`lack=${text}`);
  expect(await measured(true), program).not.toContain("lack=");
});
