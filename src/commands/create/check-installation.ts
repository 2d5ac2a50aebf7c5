import type { Context } from "../../cli/command.ts";
import type { Problems } from "../../cli/options/problems.ts";
import { outside } from "../../outside-text.ts";
import { anyCounts, chooseCounts } from "../../cluster/create/choose-counts.ts";
import { installationProblems } from "../../cluster/plan-installation.ts";
import { superuserLogin } from "../../cluster/wait-for-cluster.ts";
import type { BackendKind } from "../../backend/contract.ts";
import { type CreateInput, requestedCounts } from "./create-options.ts";

/** Checks the options that only a cluster with an installation has. */
export async function checkInstallation(
  kind: BackendKind,
  given: Partial<CreateInput>,
  problems: Problems,
  context: Context,
): Promise<void> {
  const platform = given.artifact?.kind === "folder" ? given.artifact.platform.facts : anyCounts;
  for (const problem of chooseCounts(requestedCounts(given), platform).problems ?? [])
    problems.add(problem);
  if (given.enableSelinuxEnforcing && given.linuxDistribution !== undefined) {
    const problem = kind.options.linuxDistribution.selinuxProblem(given.linuxDistribution);
    if (problem !== undefined) problems.add(`--enable-selinux-enforcing: ${problem}`);
  }
  const targets = (given.copyToMaster ?? []).flat().map(({ target }) => target);
  const repeated = targets.find((target, index) => targets.indexOf(target) !== index);
  if (repeated !== undefined)
    problems.add(`--copy-to-master: two of them write ${outside(repeated)}`);
  const hasWrongVariant = problems.all.some((each) => each.startsWith("--variant:"));
  for (const problem of await installationProblems(
    { ...given, hasWrongVariant },
    context.environment,
    context.signal,
  ))
    problems.add(problem);
  if (given.wait) {
    const login = superuserLogin(
      given.variant ?? "none",
      given.extraConfig ?? {},
      given.superuserPassword,
    );
    for (const problem of login.problems ?? []) problems.add(problem);
  }
  for (const problem of (await kind.parse(given)).problems ?? []) problems.add(problem);
}
