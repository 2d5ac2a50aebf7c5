/** `run` with a command that ends, but leaves a process that holds its output open. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { makeFolderFor } from "../../support/openssh-folder.ts";
import { opensshLack, startOpensshServer } from "../../support/openssh-server.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { runOnNodeWords } from "./run-on-node.ts";

test.skipIf(opensshLack !== undefined)(
  `the user learns which process is waited for (${opensshLack ?? "here"})`,
  async () => {
    await using scratch = await scratchFolder();
    await using server = await startOpensshServer([]);
    const directory = join(scratch.path, "state");
    await makeFolderFor(server, directory);
    const words = ["tail -f /dev/null & echo done; exit 3"];
    const program = runOnNodeWords({ directory, port: server.port, words });
    await using child = Bun.spawn([...program], { stdio: ["ignore", "pipe", "pipe"] });
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
