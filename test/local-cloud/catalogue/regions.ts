export interface RegionDescription {
  readonly name: string;
  readonly zones: readonly string[];
  readonly optInStatus: "opt-in-not-required" | "opted-in" | "not-opted-in";
  /** The error that answers calls to a region that isn't enabled. */
  readonly refusal: "AuthFailure" | "OptInRequired" | undefined;
  readonly hasDefaultVpc: boolean;
}

const enabled = {
  optInStatus: "opt-in-not-required",
  refusal: undefined,
  hasDefaultVpc: true,
} as const;

/** The regions of this cloud: ordinary ones, one without a default VPC, and two that the account hasn't enabled. */
export const regions: readonly RegionDescription[] = [
  { ...enabled, name: "us-west-2", zones: zonesOf("us-west-2", "abcd") },
  { ...enabled, name: "us-east-1", zones: zonesOf("us-east-1", "abcdef") },
  { ...enabled, name: "eu-central-1", zones: zonesOf("eu-central-1", "abc") },
  { ...enabled, name: "ap-southeast-2", zones: zonesOf("ap-southeast-2", "abc") },
  { ...enabled, name: "sa-east-1", zones: zonesOf("sa-east-1", "abc"), hasDefaultVpc: false },
  { ...enabled, name: "ap-east-1", zones: zonesOf("ap-east-1", "abc"), optInStatus: "opted-in" },
  {
    name: "af-south-1",
    zones: zonesOf("af-south-1", "abc"),
    optInStatus: "not-opted-in",
    refusal: "AuthFailure",
    hasDefaultVpc: false,
  },
  {
    name: "me-south-1",
    zones: zonesOf("me-south-1", "abc"),
    optInStatus: "not-opted-in",
    refusal: "OptInRequired",
    hasDefaultVpc: false,
  },
];

function zonesOf(region: string, letters: string): readonly string[] {
  return letters.split("").map((letter) => region + letter);
}
