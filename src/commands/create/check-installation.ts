import type { Context } from "../../cli/context.ts";
import type { Problems } from "../../cli/options/problems.ts";
import { nodeCountProblem } from "../../cluster/node-counts.ts";
import { installationProblems } from "../../cluster/plan-installation.ts";
import { superuserLogin } from "../../cluster/wait-for-cluster.ts";
import type { BackendKind } from "../../backend/contract.ts";
import type { CreateInput } from "./create-options.ts";

/** Checks what only a cluster that is to be installed has. */
export async function checkInstallation(
  kind: BackendKind,
  given: Partial<CreateInput>,
  problems: Problems,
  context: Context,
): Promise<void> {
  const nodes = nodeCountProblem((given.masters ?? 1) + (given.agents ?? 0) + (given.publicAgents ?? 0));
  if (nodes !== undefined) problems.add(`--masters, --agents, --public-agents: ${nodes}`);
  if (given.enableSelinuxEnforcing && given.linuxDistribution !== undefined) {
    const problem = kind.selinuxProblem(given.linuxDistribution);
    if (problem !== undefined) problems.add(`--enable-selinux-enforcing: ${problem}`);
  }
  for (const problem of await installationProblems(given, context.environment, context.signal)) problems.add(problem);
  if (given.wait) {
    const login = superuserLogin(given.variant ?? "oss", given.extraConfig ?? {}, given.superuserPassword);
    for (const problem of login.problems ?? []) problems.add(problem);
  }
  for (const problem of (await kind.parse(given)).problems ?? []) problems.add(problem);
}
