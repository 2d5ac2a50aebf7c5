import { type Check, localCheck, pass, warn } from "../../model/check.ts";
import { outside } from "../../outside-text.ts";
import { openSocket } from "../../ssh/connection/open-connection.ts";
import type { Environment } from "../../system/runtime.ts";
import { variable } from "../../system/variable.ts";

const metadataLimitMs = 800;

/**
 * Nodes on this computer reach whatever it reaches, so also the metadata service of a cloud instance or a hosted CI runner. Virtual machines reach it past
 * its limit of hops, containers if that allows one hop more. It is where the variable of Amazon's programs says, or at its usual address. Whether it
 * answers is enough: nothing is sent.
 */
export const metadataCheck = (environment: Environment): Check =>
  localCheck("metadata service", async (signal) => {
    const named = variable(environment, "AWS_EC2_METADATA_SERVICE_ENDPOINT") ?? "";
    const { hostname, port } = new URL(URL.canParse(named) ? named : "http://169.254.169.254");
    const target = {
      host: hostname,
      port: Number(port || "80"),
      connectTimeoutMs: metadataLimitMs,
    };
    const answers = await openSocket(target, signal).then(
      (socket) => {
        socket.destroy();
        return true;
      },
      () => false,
    );
    if (!answers) return pass(`None answers at ${outside(hostname)}`);
    return warn(
      `One answers at ${outside(hostname)}. Nodes reach it too, and get whatever it hands out, such as credentials.`,
      "Create clusters with `offline`, run only software that you trust with that, or take the role away from this machine.",
    );
  });
