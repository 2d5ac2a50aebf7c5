#!/usr/bin/env bun
/** `cluster-vm` as on a computer with an ARM processor, which QEMU can translate everywhere. */
import { architectureOf } from "../../src/backend/vm/qemu/architecture.ts";
import { vmKindOf } from "../../src/backend/vm/vm-kind.ts";
import { runProgram } from "../../src/cli/main.ts";
import { programFor } from "../../src/commands/program.ts";

await runProgram(async () => programFor(vmKindOf(architectureOf("arm64"))), process);
