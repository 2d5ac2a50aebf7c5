#!/usr/bin/env bun
import { runProgram } from "../cli/main.ts";

await runProgram(async () => {
  const [{ programFor }, { containerDriver }] = await Promise.all([
    import("../commands/program.ts"),
    import("./container-driver.ts"),
  ]);
  return programFor(containerDriver);
}, process);
