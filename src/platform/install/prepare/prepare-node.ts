import { optionName } from "../../../references.ts";
import { dirname } from "node:path/posix";
import type { Variant } from "../../../model/cluster-record.ts";
import { shellText } from "../../../ssh/shell-text.ts";
import { mapConcurrently } from "../../../system/concurrency.ts";
import type { FileToCopy } from "../../configuration/configuration-file.ts";
import { installPaths } from "../../install-paths.ts";
import type { Layout } from "../../layouts/layout.ts";
import type { PlanForNodes } from "../install-plan.ts";
import { type Phase, makeFolders, scriptPhase } from "../phase.ts";
import unitFunctions from "../unit-functions.sh" with { type: "text" };
import selinuxFile from "./enforce-selinux.sh" with { type: "text" };
import packageFunctions from "./package-functions.sh" with { type: "text" };
import prepareFile from "./prepare.sh" with { type: "text" };

const limitMs = 30 * 60_000;

export const prepareNode = (layout: Layout, plan: PlanForNodes): Phase =>
  scriptPhase("Prepare", ({ reference, step }) => ({
    name: "e2e-prepare",
    text: prepareScript(layout),
    arguments: prepareArguments(layout, plan),
    limitMs,
    task: "preparing the node",
    failure: `Cannot prepare ${reference}`,
    errorId: "install-failed",
    onNow: (text) => step.update(text),
  }));

export function prepareScript(
  layout: Pick<Layout, "containerSetup" | "packages" | "kernelModules">,
): string {
  const own = shellText(prepareFile, {
    FOLDER: installPaths.folder,
    LAYOUT_FILE: installPaths.layout,
    KERNEL_MODULES: layout.kernelModules.join(" "),
    MODULES_FILE: installPaths.modules,
  });
  return own + packageScript(layout) + shellText(unitFunctions) + layout.containerSetup;
}

/** The functions that install what nodes of the layout need. */
export const packageScript = ({ packages }: Pick<Layout, "packages">): string =>
  shellText(packageFunctions, {
    APT_PACKAGES: packages.apt.join(" "),
    RPM_PACKAGES: packages.dnf.join(" "),
  });

function prepareArguments(layout: Layout, plan: PlanForNodes): readonly string[] {
  const { nodesKeepTime, configuration } = plan;
  const conditions = layout.conditions({ nodesKeepTime, configuration: configuration.values });
  return [
    conditions.length === 0 ? "none" : conditions.join(","),
    layout.installedMarker,
    plan.cgroups1Advice,
    ...neededPrograms(layout, plan.variant),
  ];
}

export const neededPrograms = (layout: Layout, variant: Variant): readonly string[] => [
  ...layout.needs,
  ...(variant === "enterprise" ? layout.enterpriseNeeds : []),
];

const filesAtOnce = 4;

/** Sends files to the node as root, and creates missing folders. */
export const copyFiles = (copies: readonly FileToCopy[]): Phase => ({
  title: "Copy files",
  run: async ({ connection, reference, step }, signal) => {
    await makeFolders(
      { connection, reference },
      {
        name: "e2e-copy-folders",
        errorId: "install-failed",
        paths: copies.map((copy) => dirname(copy.target)),
        what: `the folders of ${optionName("copyToMaster")}`,
        // Other users must be able to reach the files that their modes let them read.
        values: { MASK: "022" },
      },
      signal,
    );
    const sent: string[] = [];
    await mapConcurrently(
      copies,
      filesAtOnce,
      async ({ target, mode, ...file }) => {
        await connection.upload({ file }, { path: target, mode, sudo: true }, signal);
        sent.push(target);
        step.update(`${sent.length} of ${copies.length}`);
      },
      signal,
    );
  },
});

export const selinuxScript = shellText(selinuxFile);

export const enforceSelinux = scriptPhase("Enforce SELinux", ({ reference }) => ({
  name: "e2e-selinux",
  text: selinuxScript,
  task: "setting SELinux to enforcing",
  failure: `${reference}: cannot set SELinux to enforcing`,
  errorId: "install-failed",
}));
