import type { Environment } from "../../src/system/runtime.ts";

const secretNames = /^(AWS|CLOUD|CLUSTER)_.*(KEY|SECRET|TOKEN|PASSWORD|LOGIN|PROFILE)/;

/**
 * Returns a function that removes from a text what others needn't know: credentials, accounts, addresses, and whatever looks like a key.
 * `names`: texts to replace, by what replaces them.
 */
export function textMask(
  environment: Environment,
  names: Readonly<Record<string, string>>,
): (text: string) => string {
  const secrets = Object.entries(environment).flatMap(([name, value = ""]) =>
    secretNames.test(name) && value.length > 3 ? [value] : [],
  );
  return (text) => {
    const named = Object.entries(names).reduce(
      (rest, [name, value]) => rest.replaceAll(value, name),
      text,
    );
    return secrets
      .reduce((rest, secret) => rest.replaceAll(secret, "***"), named)
      .replaceAll(/\barn:aws[\w-]*:\S+/g, "<arn>")
      .replaceAll(/\b(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{12,40}\b/g, "<key id>")
      .replaceAll(/\b(?:ec2|ip)(?:-\d{1,3}){4}[\w.-]*/g, "<name>")
      .replaceAll(/\b\d{1,3}(?:\.\d{1,3}){3}\b/g, "<address>")
      .replaceAll(/\b(?:[0-9a-f]{1,4}:){3,7}[0-9a-f:]*/gi, "<address>")
      .replaceAll(/\b\d{12}\b/g, "<account>")
      .replaceAll(/[\w+/=-]{60,}/g, "<…>");
  };
}
