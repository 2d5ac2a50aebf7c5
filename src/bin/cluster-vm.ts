#!/usr/bin/env bun
import { runProgram } from "../cli/main.ts";

await runProgram(async () => {
  const [{ programFor }, { vmKind }] = await Promise.all([
    import("../commands/program.ts"),
    import("../backend/vm/vm-kind.ts"),
  ]);
  return programFor(vmKind);
}, process);
