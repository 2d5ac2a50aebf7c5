import { Spec, Validation } from "@cyclonedx/cyclonedx-library";

/** What the schema of CycloneDX 1.6 finds wrong with a bill of materials, unknown keys included; null where all is right. */
export async function billFaults(text: string): Promise<unknown> {
  return new Validation.JsonStrictValidator(Spec.Version.v1dot6).validate(text);
}
