/** `import` from stdin. */
import { expect, test } from "bun:test";
import { join } from "node:path";

const program = join(import.meta.dir, "../../../src/bin/cluster-cloud.ts");

test.each([
  ["echo 'not an export' |", "stdin was not written by cluster-cloud export"],
  ["</ ", "Cannot read stdin: it is a folder"],
])("what is wrong with stdin is said of stdin: %s", async (stdin, message) => {
  const line = `${stdin} ${process.execPath} ${program} import -`;
  const child = Bun.spawn(["sh", "-c", line], {
    env: { PATH: process.env["PATH"] },
    stderr: "pipe",
  });
  const stderr = await child.stderr.text();
  expect(stderr).toContain(message);
  expect(stderr).toEndWith("\n[bad-usage]\n");
});

test("a socket, which nothing can open by a name, is read too", async () => {
  using server = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: { data: () => {}, open: (socket) => void socket.end("not an export") },
  });
  const line = `exec 3<>/dev/tcp/127.0.0.1/${server.port}; exec "$@" <&3`;
  const child = Bun.spawn(["bash", "-c", line, "bash", process.execPath, program, "import", "-"], {
    env: { PATH: process.env["PATH"] },
    stderr: "pipe",
  });
  expect(await child.stderr.text()).toContain("stdin was not written by cluster-cloud export");
});
