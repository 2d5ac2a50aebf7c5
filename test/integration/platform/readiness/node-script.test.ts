/** node.sh by itself, with checks and files of all shapes. */
import { describe, expect, test } from "bun:test";
import { chmod } from "node:fs/promises";
import { join } from "node:path";
import {
  judgeNode,
  nodeScript,
  parseNodeReport,
} from "../../../../src/platform/readiness/node-question.ts";
import { machinesLack, startMachines } from "../../../support/install-machine.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

const manyCommas =
  '{"name": "meter", "version": "1.0",\n "ports": [1, 2, 3], "description": "a, b"}\n';
/** Checks have a second here. */
const script = nodeScript.replace(/^CHECK_SECONDS=.*$/m, "CHECK_SECONDS=1");

/** The answer of a node with this check that may look for five seconds until it is ready. */
async function answerWith(
  check: string,
  facts = manyCommas,
  more: readonly string[] = [],
  text = script,
): Promise<ReturnType<typeof parseNodeReport>> {
  await using machines = await startMachines({ roles: ["master"] });
  const machine = machines.machines[0]!;
  await machine.write("var/lib/cluster-e2e/layout", "folder\n");
  await machine.write("var/lib/cluster-e2e/install.status", "exit 0\n");
  await machine.write("opt/cluster-platform/platform.json", facts);
  await machine.write("opt/cluster-platform/web.json", '{"ssl_enabled": true, "web": null}\n');
  await machine.write("opt/cluster-platform/check-node", `#!/bin/bash\n${check}\n`);
  await chmod(join(machine.folder, "opt/cluster-platform/check-node"), 0o755);
  const connection = await machines.connections.connect(machine.node, neverAborted);
  const argv = ["sh", "-s", "--", "e2e-readiness", "1", "0", "500", ...more];
  const { stdout } = await connection.run(
    { argv, sudo: true, stdin: text, limitMs: 60_000 },
    neverAborted,
  );
  return parseNodeReport(stdout);
}

describe.skipIf(machinesLack !== undefined)("the question to a node", () => {
  test.each([
    ["hangs", "sleep 300", ""],
    [
      "hangs after some output",
      "printf 'a, b\\nc=d, check.status=0\\n'; sleep 300",
      "a, b\nc=d, check.status=0",
    ],
    [
      "hangs and ignores what asks it to end",
      "trap '' TERM; echo still here; while :; do sleep 1; done",
      "still here",
    ],
  ])("is answered if the check %s", async (_what, check, output) => {
    for (const facts of [manyCommas, ""]) {
      const report = await answerWith(check, facts);
      expect(report).toMatchObject({ layout: "folder", status: "exit 0", checkStatus: 124 });
      expect(report.checkOutput).toStartWith(output);
      expect(report.facts).toBe(facts.replaceAll("\n", ""));
      expect(judgeNode(report)).toEqual({
        kind: "waiting",
        reason: "the platform's own check does not finish",
      });
    }
  });

  test("has the answer before, if only a later check hangs", async () => {
    const check =
      '[ ! -e "$MACHINE/asked" ] || sleep 300\ntouch "$MACHINE/asked"\necho not, yet\nexit 1';
    expect(await answerWith(check)).toMatchObject({
      layout: "folder",
      checkStatus: 1,
      checkOutput: "not, yet",
    });
  });

  describe("has the limit of the platform", () => {
    const facts = (limit: string) =>
      `{"name":"meter","description":"\\"checkTimeout\\":\\"1s\\"","checkTimeout":"${limit}","logs":{}}\n`;

    test("if that is longer than usual", async () => {
      const report = await answerWith("sleep 2; echo done", facts("60s"), ["60"]);
      expect(report).toMatchObject({
        checkStatus: 0,
        checkOutput: "done",
        checkSeconds: undefined,
      });
    });

    test("if that is shorter than usual", async () => {
      const short = nodeScript.replace(/^CHECK_SECONDS=.*$/m, "CHECK_SECONDS=600");
      const report = await answerWith("sleep 300", facts("1s"), ["600"], short);
      expect(report).toMatchObject({ checkStatus: 124 });
    });

    test.each(["60s", "600s"])(
      "which it names if nobody waits that long for a check: %s",
      async (limit) => {
        const report = await answerWith('touch "$MACHINE/ran"; exit 1', facts(limit), ["20"]);
        expect(report).toMatchObject({
          checkStatus: undefined,
          checkSeconds: Number.parseInt(limit),
        });
        expect(report.facts).toContain("meter");
      },
    );

    test.each(["", "0s", "s", "-1s", "09s", "6000s", "1m", "2", "$(touch x)s"])(
      "unless it is none: %j",
      async (limit) => {
        const report = await answerWith("echo done", facts(limit), ["20"]);
        expect(report).toMatchObject({
          checkStatus: 0,
          checkOutput: "done",
          checkSeconds: undefined,
        });
      },
    );
  });

  test.each([
    ["check.status=124", 0],
    ["a, b\ncheck.status=124\nlayout=", 0],
    ["a, check.status=124", 7],
    ["{},{}\n\n=", 137],
    ["", 1],
  ])(
    "takes the output %j of a check that ends with %p for nothing else",
    async (output, status) => {
      const report = await answerWith(
        `printf '${output.replaceAll("\n", "\\n")}\\n'; exit ${status}`,
      );
      expect(report).toMatchObject({
        layout: "folder",
        checkStatus: status,
        checkOutput: output.trimEnd(),
      });
    },
  );
});
