/** `run` with a command that ends, but leaves a process that holds its output open. */
import { expect, test } from "bun:test";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createKnownHosts } from "../../../src/ssh/openssh-files.ts";
import { creationFiles } from "../../../src/store/creation-folder.ts";
import { opensshLack, startOpensshServer } from "../../support/openssh-server.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { wireKey } from "../../support/ssh-options.ts";

test.skipIf(opensshLack !== undefined)(
  `the user learns which process is waited for (${opensshLack ?? "here"})`,
  async () => {
    await using scratch = await scratchFolder();
    await using server = await startOpensshServer([]);
    const directory = join(scratch.path, "state");
    await mkdir(directory);
    const files = creationFiles(directory);
    await writeFile(files.privateKey, server.loginKey.privateKey, { mode: 0o600 });
    await createKnownHosts(files.knownHosts).pin(
      "127.0.0.1",
      server.port,
      wireKey(server.firstHostKey.publicKey),
    );
    const words = ["tail -f /dev/null & echo done; exit 3"];
    const request = JSON.stringify({ directory, port: server.port, words, fetches: [] });
    await using child = Bun.spawn(
      [process.execPath, join(import.meta.dir, "run-on-node-program.ts"), request],
      {
        stdio: ["ignore", "pipe", "pipe"],
      },
    );
    const decoder = new TextDecoder();
    let stderr = "";
    for await (const chunk of child.stderr) {
      stderr += decoder.decode(chunk);
      const [, pid] = /\(tail (\d+)\)/.exec(stderr) ?? [];
      if (pid !== undefined) process.kill(Number(pid));
    }
    expect(stderr).toMatch(
      /master_0: the command has ended with status 3\. .+ \(tail \d+\) still holds its output open/,
    );
    expect(await new Response(child.stdout).text()).toBe("done\n");
    expect(await child.exited).toBe(3);
  },
);
