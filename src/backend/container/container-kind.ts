import { lifetimeSummary } from "../../model/option-schema.ts";
import { defineBackend } from "../contract.ts";
import { containerSchema, containerOptions } from "./options.ts";

/** Everything specific to `cluster-container`: images, volumes and container limits. */
export const containerKind = defineBackend({
  name: "container",
  summary: "Create and manage test clusters of containers on this computer",
  options: containerSchema,
  parse: async (given) => Promise.resolve({ value: containerOptions(given) }),
  machineId: /^[0-9a-f]{12}$/,
  local: {
    snapshots:
      "`create` saves the file systems of all nodes at one moment. `restore` restarts the nodes from there, with the same addresses: their services boot, and nothing is installed. Folders that nodes mount (`--custom-volume`) are not included.",
    copies:
      "Create the cluster from a snapshot, or from a file that `snapshot save` wrote, instead of an artifact: its nodes boot from there, with the same software, data and private addresses. The path of a file contains a / or no colon",
    files:
      "`save` writes a snapshot to one file, from which `create --from FILE` makes clusters on other computers, with Docker or Podman. The file contains everything on the nodes, secrets included.",
    power:
      "A stopped node shuts down and keeps its file system; after a restart of this computer, all nodes are stopped. A paused node keeps its processes, which stand still.",
    lifetimes: lifetimeSummary,
  },
  open: async (work, { engine }) => {
    const { openContainerBackend } = await import("./container-backend.ts");
    return openContainerBackend(work, { engine });
  },
  doctor: {
    subject: "this computer and its container engine",
    checks: async (work, { engine }) => {
      const { containerChecks } = await import("./checks.ts");
      return containerChecks(work, engine);
    },
  },
});
