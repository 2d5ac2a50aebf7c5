#!/usr/bin/env bun
import { runProgram } from "../cli/main.ts";

await runProgram(async () => {
  const [{ programFor }, { cloudKind }] = await Promise.all([
    import("../commands/program.ts"),
    import("../backend/cloud/cloud-kind.ts"),
  ]);
  return programFor(cloudKind);
}, process);
