#!/usr/bin/env bun
import { runProgram } from "../cli/main.ts";

await runProgram(async () => {
  const [{ programFor }, { containerKind }] = await Promise.all([
    import("../commands/program.ts"),
    import("../backend/container/container-kind.ts"),
  ]);
  return programFor(containerKind);
}, process);
