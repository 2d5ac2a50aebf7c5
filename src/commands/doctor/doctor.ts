import type { BackendKind } from "../../backend/contract.ts";
import { defineCommand } from "../../cli/command.ts";
import { outputFormat, verbose } from "../../cli/options/value-types.ts";
import { scopeOptions } from "../backend-options.ts";

export const doctorCommand = (kind: BackendKind) =>
  defineCommand({
    name: "doctor",
    summary: `Check ${kind.doctor.subject} for common problems`,
    description:
      "Run all checks at the same time and print how to fix each problem. The checks change nothing. The exit code is 1 if a check fails.",
    options: { ...scopeOptions(kind), output: outputFormat(["text", "json"]), verbose },
    examples: [
      { words: "doctor", summary: "Check everything before the first `create`" },
      { words: "doctor -v", summary: "Also print details, and how long each check took" },
    ],
    run: async (input, context) => {
      const { executeDoctor } = await import("./execute-doctor.ts");
      return executeDoctor(kind, input, context);
    },
  });
