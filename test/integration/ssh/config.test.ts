import { expect, test } from "bun:test";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { renderSshConfig } from "../../../src/ssh/openssh-files.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";

test("OpenSSH interprets the configuration as intended", async () => {
  await using folder = await scratchFolder();
  const path = join(folder.path, "config");
  const nodes = [0, 1].map((index) => ({
    id: `i-${index}`,
    role: "agent",
    index,
    ssh: { host: `203.0.113.${index}`, port: 22 + index, user: "admin" },
  }));
  await writeFile(
    path,
    renderSshConfig(nodes, { identityFile: "/50% of it/key", knownHostsFile: "/50% of it/known hosts" }),
  );
  const output = await Bun.$`ssh -G -F ${path} agent_1`.text();
  const lines = output.split("\n");
  const expected = [
    "hostname 203.0.113.1",
    "port 23",
    "user admin",
    "identityfile /50%% of it/key",
    "userknownhostsfile /50% of it/known hosts",
    "globalknownhostsfile /dev/null",
    "stricthostkeychecking true",
    "identitiesonly yes",
    "hostkeyalgorithms ssh-ed25519",
    "loglevel ERROR",
  ];
  expect(expected.filter((line) => !lines.includes(line))).toEqual([]);
});
