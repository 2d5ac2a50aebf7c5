/** Whether a parsed value (JSON, YAML) is an object with keys, not a list and not null. */
export const isMapping = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
