#!/usr/bin/env bun
import { runProgram } from "../cli/main.ts";
import { programFor } from "../commands/program.ts";
import { vmDriver } from "./vm-driver.ts";

await runProgram(programFor(vmDriver), process);
