/**
 * Runs `web` for a cluster whose keys are here and whose master has no platform yet. The tests run it as a child process, because it starts a browser.
 * Arguments: VARIANT FOLDER.
 */
import { writeFile } from "node:fs/promises";
import { containerKind } from "../../../src/backend/container/container-kind.ts";
import type { NodeRecord, Variant } from "../../../src/model/cluster-record.ts";
import { generateKeyPair } from "../../../src/ssh/keys.ts";
import { createKnownHosts } from "../../../src/ssh/openssh-files.ts";
import { creationFiles } from "../../../src/store/creation-folder.ts";
import { InProcessMachine } from "../../local-cloud/machines/in-process-machine.ts";
import { ScriptedAnswers } from "../../local-cloud/machines/scripted-answers.ts";
import { freePort } from "../../support/free-port.ts";
import { exampleCluster } from "../../support/install-example.ts";
import { runCommandLine } from "../../support/run-command.ts";
import { wireKey } from "../../support/ssh-options.ts";

const [variant, directory = ""] = process.argv.slice(2);
const files = creationFiles(directory);
const [login, host] = [generateKeyPair("login"), generateKeyPair("host")];
const ssh = { host: "127.0.0.1", port: await freePort(), user: "root" };
await writeFile(files.privateKey, login.privateKey, { mode: 0o600 });
await createKnownHosts(files.knownHosts).pin(ssh.host, ssh.port, wireKey(host.publicKey));

const answers = new ScriptedAnswers();
answers.replace([{ pattern: "", readsStdin: true }]);
const machine = new InProcessMachine(
  {
    instanceId: "i-0",
    hostname: "master",
    privateAddress: ssh.host,
    distribution: "debian-12",
    imageUser: ssh.user,
    userData: Buffer.from(
      `#cloud-config\n${JSON.stringify({
        ssh_keys: { ed25519_private: host.privateKey },
        users: [{ name: ssh.user, ssh_authorized_keys: [login.publicKey] }],
      })}`,
    ),
  },
  { publicAddress: ssh.host, sshPort: ssh.port, onExec: answers.handle, loginShell: () => ({}) },
);
await machine.start();

const web = { host: "192.0.2.1", httpPort: 80, httpsPort: 443 };
const master = { role: "master", index: 0, state: "running", ssh, web };
const cluster = { ...exampleCluster([master as NodeRecord], variant as Variant), directory };
const backend = { find: async () => cluster };
console.log(
  JSON.stringify(
    await runCommandLine("web -c example", { kind: containerKind, backend, nowMs: 0 }),
  ),
);
await machine.stop();
