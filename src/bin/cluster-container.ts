#!/usr/bin/env bun
import { runProgram } from "../cli/main.ts";
import { programFor } from "../commands/program.ts";
import { containerDriver } from "./container-driver.ts";

await runProgram(programFor(containerDriver), process);
