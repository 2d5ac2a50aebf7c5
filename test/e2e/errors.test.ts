/**
 * Errors of the command line, the cloud and the artifact, caused in the built executable. Those of nodes are in
 * errors-on-nodes.test.ts. test/unit/errors.test.ts checks that no id is missing.
 */
import { behaving, createWords, striking, testErrors } from "./support/error-cases.ts";
import type { ErrorCase } from "./support/error-cases.ts";

const nobody = {
  CLOUD_ACCESS_KEY_ID: "",
  CLOUD_SECRET_ACCESS_KEY: "",
  AWS_EC2_METADATA_DISABLED: "true",
};

const cases: readonly ErrorCase[] = [
  {
    id: "bad-usage",
    status: 2,
    words: ["logs", "-c", "base", "--output-dir", "page.html"],
    says: ["Cannot save logs in ", "page.html: ", "Pass a folder"],
  },
  {
    id: "bad-usage",
    status: 2,
    words: createWords("other", "--ssh-key", "page.html", "--workspace-dir", "none"),
    says: [
      "--ssh-key: ",
      "page.html is not a private key. Pass the private key",
      "--workspace-dir: ",
      "none does not exist",
    ],
  },
  {
    id: "bad-usage",
    status: 2,
    words: ["create", "--variant", "open"],
    says: [
      '--variant: "open" is not one of oss, enterprise',
      "PLATFORM: required",
      "See cluster-cloud create --help",
    ],
  },
  {
    id: "cluster-not-found",
    status: 3,
    words: ["inspect", "-c", "base", "--cloud-region", "us-east-1"],
    says: ['no cluster "base" in region us-east-1', "in us-west-2: add --cloud-region us-west-2"],
  },
  {
    id: "machine-not-set-up",
    status: 5,
    words: ["run", "-c", "base", "true"],
    environment: { PATH: "/nowhere" },
    says: ["no ssh on this computer's PATH", "openssh-client"],
  },
  {
    id: "machine-not-set-up",
    status: 5,
    words: createWords("other"),
    environment: { XDG_STATE_HOME: "/proc/nowhere" },
    says: [
      "the cluster's folder in /proc/nowhere/cluster-e2e/cloud/us-west-2: ",
      "Set XDG_STATE_HOME to another folder",
    ],
  },
  {
    id: "machine-not-set-up",
    status: 5,
    words: createWords("other"),
    environment: { TMPDIR: "/nowhere" },
    says: ["/nowhere does not exist", "Set --workspace-dir or TMPDIR"],
  },
  {
    id: "no-credentials",
    status: 5,
    words: ["list"],
    environment: { ...nobody, HOME: "/nonexistent" },
    says: [
      "CLOUD_ACCESS_KEY_ID and CLOUD_SECRET_ACCESS_KEY; CLOUD_PROFILE; AWS_PROFILE; AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; a default profile in /nonexistent/.aws/credentials; instance metadata",
      "Set CLOUD_ACCESS_KEY_ID",
    ],
  },
  {
    id: "credentials-refused",
    status: 5,
    words: ["list"],
    environment: { CLOUD_SECRET_ACCESS_KEY: "wrong" },
    says: [
      "the variables CLOUD_ACCESS_KEY_ID, CLOUD_SECRET_ACCESS_KEY",
      "(SignatureDoesNotMatch)",
      "Check that the key and the secret belong together",
    ],
  },
  {
    id: "not-permitted",
    status: 5,
    words: ["list"],
    prepare: behaving({ deniedActions: ["DescribeInstances"] }, { deniedActions: [] }),
    says: ["may not call ec2:DescribeInstances", "Allow ec2:DescribeInstances", "shown with -v"],
  },
  {
    id: "no-default-network",
    status: 5,
    words: createWords("other", "--cloud-region", "sa-east-1"),
    says: ["Region sa-east-1 has no default network", "--subnet"],
  },
  {
    id: "region-not-enabled",
    status: 5,
    words: ["list", "--cloud-region", "me-south-1"],
    says: ["Region me-south-1", "Enabled: ap-east-1, ap-southeast-2, eu-central-1"],
  },
  {
    id: "image-not-found",
    status: 1,
    words: ["create", "--variant", "oss", "open.sh", "--cloud-region", "ap-southeast-2"],
    says: [
      'centos-7 ("CentOS Linux 7 x86_64*"',
      "in region ap-southeast-2",
      "--image and --ssh-user",
    ],
  },
  {
    id: "cluster-exists",
    status: 1,
    words: createWords("base"),
    says: [
      'A cluster "base" already exists',
      "in region us-west-2",
      "It ends ",
      "another --cluster-id",
    ],
  },
  {
    id: "capacity-lacking",
    status: 1,
    words: createWords("other"),
    prepare: behaving({ vcpuLimit: 2 }, { vcpuLimit: 100_000 }),
    says: [
      "(VcpuLimitExceeded)",
      "Requested: 1 × m5.large (1 master, 0 agents, 0 public agents)",
      "smaller --instance-type",
    ],
    hasLog: true,
  },
  {
    id: "cloud-failed",
    status: 1,
    words: ["list"],
    prepare: striking({
      action: "DescribeInstances",
      when: "before",
      code: "Odd",
      message: "The moon is full",
    }),
    says: [
      "ec2:DescribeInstances failed in region us-west-2: The moon is full (Odd)",
      "support can look up the request ",
    ],
  },
  {
    id: "artifact-unreachable",
    status: 1,
    words: ["create", "--variant", "oss", "none.sh"],
    says: ["none.sh: there is no such folder or file", "the folder of a platform"],
  },
  {
    id: "artifact-invalid",
    status: 1,
    words: createWords("other", "--artifact-sha256", "a".repeat(64)),
    says: [
      "artifact.sh has the SHA-256 checksum ",
      `, not ${"a".repeat(64)}`,
      "Check --artifact-sha256",
    ],
  },
  {
    id: "artifact-invalid",
    status: 1,
    words: ["create", "--variant", "oss", "page.html"],
    says: [
      "page.html is not a release artifact: it is a web page",
      "without a login or a download page",
    ],
  },
  {
    id: "variant-mismatch",
    status: 1,
    words: ["create", "--variant", "enterprise", "open.sh"],
    says: ["open.sh is the oss variant, but --variant is enterprise", "Pass --variant oss"],
  },
  {
    id: "output-lost",
    status: 1,
    words: ["list"],
    stdout: "/dev/full",
    says: ["Cannot write the result: no space left on device"],
  },
];

// Shows R90.
testErrors("errors of command line, cloud and artifact", cases);
