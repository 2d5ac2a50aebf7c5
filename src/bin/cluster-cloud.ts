#!/usr/bin/env bun
import { runProgram } from "../cli/main.ts";
import { programFor } from "../commands/program.ts";
import { cloudDriver } from "./cloud-driver.ts";

await runProgram(programFor(cloudDriver), process);
