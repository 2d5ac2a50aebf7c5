import { isMapping } from "../../system/is-mapping.ts";
import type { Configuration } from "./configuration.ts";

/**
 * Returns the values in a configuration that must not be printed, for `Progress.hide`: strings at any depth under a key that suggests a secret. The
 * artifact's error lines may quote them.
 */
export const configurationSecrets = (configuration: Configuration): readonly string[] => [
  ...new Set(
    Object.entries(configuration).flatMap(([key, value]) => (isSecretKey(key) ? textsIn(value) : secretsIn(value))),
  ),
];

const isSecretKey = (key: string): boolean =>
  /password|passwd|secret|credential|token|private_key|license_key/i.test(key);

function secretsIn(value: unknown): readonly string[] {
  if (Array.isArray(value)) return value.flatMap(secretsIn);
  return isMapping(value) ? configurationSecrets(value) : [];
}

/** Words such as `true` are settings; hiding them would mask half of the output. */
function textsIn(value: unknown): readonly string[] {
  if (Array.isArray(value)) return value.flatMap(textsIn);
  if (isMapping(value)) return Object.values(value).flatMap(textsIn);
  const text = typeof value === "string" || typeof value === "number" ? String(value) : "";
  return text === "" || /^(true|false|yes|no|null|none)$/i.test(text) ? [] : [text];
}
