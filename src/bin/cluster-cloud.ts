#!/usr/bin/env bun
import { runProgram } from "../cli/main.ts";

await runProgram(async () => {
  const [{ programFor }, { cloudDriver }] = await Promise.all([
    import("../commands/program.ts"),
    import("./cloud-driver.ts"),
  ]);
  return programFor(cloudDriver);
}, process);
