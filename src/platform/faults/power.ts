import { numbered } from "../../system/amounts.ts";
import { type Observed, faultRow } from "./fault-kind.ts";

const bootOf = ({ measured }: Observed): string | undefined => measured.get("boot");
const hasBooted = (before: readonly Observed[]) => (each: Observed, index: number) =>
  bootOf(each) !== bootOf(before[index] ?? each);

export const power = faultRow({
  summary: "restarts a machine at once, without what is only in its memory, as a power cut does",
  script: async () => import("./power.sh", { with: { type: "text" } }),
  options: {},
  needs: [],
  takesNodes: true,
  notInContainers:
    "Containers have this computer's memory: what they have written outlasts a power cut.",
  restarts: true,
  explains: ["reboot", "failed-unit", "kernel-error"],
  plan({ nodes = [] }, { find }) {
    const chosen = find(nodes);
    return {
      description: "power cut",
      parts: chosen.map((node) => ({ node, values: {}, measure: {} })),
    };
  },
  random: () => ({}),
  state: (observed, before = observed) => {
    const booted = observed.filter(hasBooted(before)).length;
    return booted === 0 ? "it runs" : `it booted again on ${numbered(booted, "node")}`;
  },
  shows: (_request, before, after) => after.every(hasBooted(before)),
});
