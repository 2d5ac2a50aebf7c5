/** What must not open a copy of a template. */
import { expect } from "bun:test";
import { readFile, readdir } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import type { TestVms } from "./test-vms.ts";

/** What a command prints on each node, by the node's name. */
async function onNodes(vms: TestVms, id: string, command: string): Promise<Readonly<Record<string, string>>> {
  const ran = await vms.run(["run", "-c", id, "--no-test-env", "--node", "all", "--output", "json", command]);
  expect(ran.status, ran.stderr).toBe(0);
  const { nodes } = JSON.parse(ran.stdout) as {
    nodes: readonly { readonly reference: string; readonly stdout: string }[];
  };
  return Object.fromEntries(nodes.map(({ reference, stdout }) => [reference, stdout.trim()]));
}

const keyBegin = "-----BEGIN OPENSSH PRIVATE KEY-----";
const keyEnd = "-----END OPENSSH PRIVATE KEY-----";

/** Every private key in the files of the templates: what the memory and the disk of one still hold is anybody's who can read it. */
async function keysInTemplates(vms: TestVms): Promise<readonly string[]> {
  const names = await readdir(vms.templatesFolder, { recursive: true, withFileTypes: true });
  const keys = new Set<string>();
  for (const file of names.filter((each) => each.isFile())) {
    const bytes = await readFile(join(file.parentPath, file.name));
    for (let at = bytes.indexOf(keyBegin); at !== -1; at = bytes.indexOf(keyBegin, at + 1)) {
      const end = bytes.indexOf(keyEnd, at);
      if (end !== -1 && end - at < 10_000) keys.add(`${bytes.toString("latin1", at, end)}${keyEnd}\n`);
    }
  }
  return [...keys];
}

/** Tries, on every node, all keys that an attacker could have who has the templates and another cluster of copies. */
export async function expectClosedCopies(vms: TestVms, id: string, other: string): Promise<void> {
  const own = await vms.inspect(id);
  const shown = (await vms.run(["inspect", "-c", id, "--output", "ssh-config"])).stdout;
  const foreign = await readFile((await vms.inspect(other)).sshKey.path, "utf8");
  const [key, config] = [join(vms.folder, "foreign-key"), join(vms.folder, "foreign.ssh")];
  for (const text of [foreign, ...(await keysInTemplates(vms))])
    for (const { reference } of own.nodes)
      for (const user of ["e2e", "root"]) {
        await Bun.write(key, text);
        await Bun.$`chmod 600 ${key}`;
        await Bun.write(config, shown.replaceAll(own.sshKey.path, key));
        const ran = await Bun.$`ssh -F ${config} -o BatchMode=yes -l ${user} ${reference} true`.quiet().nothrow();
        expect({ status: ran.exitCode, stderr: ran.stderr.toString() }).toEqual({
          status: 255,
          stderr: expect.stringMatching(/Permission denied|invalid format|error in libcrypto/),
        });
      }
  for (const { reference } of own.nodes) await sendToAgent(await vms.machineFolder(id, reference));
  await Bun.sleep(2_000);
  expect(await onNodes(vms, id, "ls /var/tmp/owned 2>/dev/null; true")).toEqual(
    Object.fromEntries(own.nodes.map(({ reference }) => [reference, ""])),
  );
}

/** Sends a script, as the program does once to make a copy a node. */
async function sendToAgent(folder: string): Promise<void> {
  const script = Buffer.from("touch /var/tmp/owned").toString("base64");
  const link = `/tmp/cluster-e2e-agent-${process.pid}`;
  await Bun.$`ln -sfn ${folder} ${link}`;
  const socket = connect(join(link, "identity.sock"));
  await new Promise<void>((resolve, reject) => {
    socket.once("error", reject);
    socket.write(`${script}\n`, () => resolve());
  });
  await Bun.sleep(200);
  socket.destroy();
  await Bun.$`rm ${link}`;
}
