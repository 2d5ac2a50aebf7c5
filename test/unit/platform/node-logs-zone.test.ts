/** The times of a node's logs, where the node is not in UTC. */
import { expect, test } from "bun:test";
import { mergedLines } from "../../../src/cluster/logs/merged-lines.ts";
import { logsScript, parseLogs } from "../../../src/platform/node-logs.ts";
import { neverAborted } from "../../support/never-aborted.ts";

test("what systemd says of units has the time at which it was", async () => {
  const script = `
systemctl() { date "+%b %d %H:%M:%S host systemd[1]: app.service: Failed with result 'signal'."; }
journalctl() { date "+%Y-%m-%dT%H:%M:%S.000000%z host app[7]: it ends"; }
coredumpctl() { :; }
${logsScript({})}`;
  const environment = { ...process.env, TZ: "EAST-5" };
  const child = Bun.spawn(["sh", "-c", script], { env: environment, stdout: "pipe" });
  const texts = parseLogs(await new Response(child.stdout).text());
  const named = texts.map(({ name, text }) => ({ name: `master_0.${name}`, text }));
  const nowMs = Date.now();
  const lines = await mergedLines(named, nowMs, neverAborted);
  expect(new Set(lines.map(({ text }) => text))).toEqual(
    new Set(["app.service: Failed with result 'signal'.", "it ends"]),
  );
  for (const { ms = 0 } of lines) expect(Math.abs(ms - nowMs)).toBeLessThan(600_000);
});
