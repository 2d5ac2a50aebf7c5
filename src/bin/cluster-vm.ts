#!/usr/bin/env bun
import { runProgram } from "../cli/main.ts";

await runProgram(async () => {
  const [{ programFor }, { vmDriver }] = await Promise.all([
    import("../commands/program.ts"),
    import("./vm-driver.ts"),
  ]);
  return programFor(vmDriver);
}, process);
