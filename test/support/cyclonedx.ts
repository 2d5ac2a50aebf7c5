import { Spec, Validation } from "@cyclonedx/cyclonedx-library";

/** Validates a bill of materials against the schema of CycloneDX 1.6, which also rejects unknown keys. Returns null if it is valid. */
export async function billFaults(text: string): Promise<unknown> {
  return new Validation.JsonStrictValidator(Spec.Version.v1dot6).validate(text);
}
