import type { Variant } from "../../../model/cluster-record.ts";
import { shellText } from "../../../ssh/shell-text.ts";
import { installPaths } from "../../install-paths.ts";
import type { PlanForNodes } from "../install-plan.ts";
import type { Layout } from "../../layout.ts";
import { type Phase, runRemoteScript } from "../phase.ts";
import packageFunctions from "./package-functions.sh" with { type: "text" };
import prepareFile from "./prepare.sh" with { type: "text" };
import unitFunctions from "../unit-functions.sh" with { type: "text" };

const limitMs = 30 * 60_000;

/** Prepares the node for the layout's installer. */
export const prepareNode = (layout: Layout, plan: PlanForNodes): Phase => ({
  title: "Prepare",
  run: async ({ connection, reference, step }, signal) => {
    await runRemoteScript(
      connection,
      {
        name: "e2e-prepare",
        text: prepareScript(layout),
        arguments: prepareArguments(layout, plan),
        limitMs,
        task: "preparing the node",
        failure: `Cannot prepare ${reference}`,
        errorId: "install-failed",
        onNow: (text) => {
          step.update(text);
        },
      },
      signal,
    );
  },
});

/** Returns the body of the script. */
export function prepareScript({ containerSetup }: Pick<Layout, "containerSetup">): string {
  const own = shellText(prepareFile, { FOLDER: installPaths.folder, LAYOUT_FILE: installPaths.layout });
  const functions = shellText(packageFunctions) + shellText(unitFunctions);
  return own + functions + containerSetup;
}

/** The arguments of prepareScript. */
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

/** Programs that a node of the variant needs. */
export const neededPrograms = (layout: Layout, variant: Variant): readonly string[] => [
  ...layout.needs,
  ...(variant === "enterprise" ? layout.enterpriseNeeds : []),
];
