import { optionName } from "../../references.ts";
import { type Check, localCheck, pass, warn } from "../../model/check.ts";
import { outside } from "../../outside-text.ts";
import { openSocket } from "../../ssh/connection/open-connection.ts";
import type { Environment } from "../../system/runtime.ts";
import { variable } from "../../system/variable.ts";

const metadataLimitMs = 800;

/** https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html */
const usualAddresses = ["http://169.254.169.254", "http://[fd00:ec2::254]"];

/**
 * Nodes on this computer reach whatever it reaches, so also the metadata service of a cloud
 * instance or a hosted CI runner. Virtual machines reach it past its limit of hops, containers if
 * that allows one hop more. It is where the variable of Amazon's programs says, or at its usual
 * addresses. Whether it answers is enough: nothing is sent.
 */
export const metadataCheck = (environment: Environment): Check =>
  localCheck("metadata service", async (signal) => {
    const named = variable(environment, "AWS_EC2_METADATA_SERVICE_ENDPOINT") ?? "";
    const urls = (URL.canParse(named) ? [named] : usualAddresses).map((text) => new URL(text));
    const answers = await Promise.all(urls.map(async (url) => doesAnswer(url, signal)));
    const host = urls.find((_, place) => answers[place])?.hostname;
    if (host === undefined)
      return pass(`None answers at ${outside(urls.map(({ hostname }) => hostname).join(" or "))}`);
    return warn(
      `One answers at ${outside(host)}. Nodes reach it too, and get whatever it hands out, such as credentials.`,
      `Create clusters with ${optionName("offline")}, run only software that you trust with that, or take the role away from this computer.`,
    );
  });

const doesAnswer = async (
  { hostname, port, protocol }: URL,
  signal: AbortSignal,
): Promise<boolean> => {
  const target = {
    // An IPv6 address stands in brackets in a URL only.
    host: hostname.replace(/^\[|\]$/g, ""),
    port: Number(port || (protocol === "https:" ? "443" : "80")),
    connectTimeoutMs: metadataLimitMs,
  };
  return openSocket(target, signal).then(
    (socket) => {
      socket.destroy();
      return true;
    },
    () => false,
  );
};
