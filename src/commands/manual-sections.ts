/** What the programs' manual pages say at their end. */
import type { Program } from "../cli/command.ts";
import type { ManualSection } from "../cli/help/help.ts";

const credentials: ManualSection["entries"] = [
  [
    "CLOUD_ACCESS_KEY_ID, CLOUD_SECRET_ACCESS_KEY, CLOUD_SESSION_TOKEN",
    "Credentials; they come before all others",
  ],
  ["CLOUD_PROFILE, AWS_PROFILE", "The profile in ~/.aws/credentials and ~/.aws/config"],
  ["CLUSTER_CHECK_ADDRESS_URL", "The service that says from which address this computer is seen"],
];

/** Clusters in the cloud end by themselves. */
const isInCloud = ({ commands }: Program): boolean =>
  !commands.some((command) => command.name === "destroy");

/** The variables that say which cluster is meant, and where it is. */
function placeOptions({ commands }: Program): ManualSection["entries"] {
  const options = commands.flatMap((command) => Object.values(command.options));
  const texts = options.flatMap(({ flag, isRepeated, environment }) =>
    isRepeated === true && environment !== undefined
      ? ([[environment, `The default of ${flag}; run --local sets it`]] as const)
      : [],
  );
  return [...new Map(texts)];
}

export const manualSections = (program: Program): readonly ManualSection[] => [
  {
    title: "EXIT STATUS",
    entries: [
      ["0", "Everything was done"],
      ["1", "The operation failed, or a check of doctor did"],
      ["2", "The command line is wrong, or a file that it names; nothing was touched"],
      ["3", "There is no such cluster or node"],
      ["4", "A time limit passed"],
      ["5", "This computer or the account is not set up"],
      ["70", "A bug in this program"],
      ["130, 143", "It was interrupted, and has cleaned up"],
      [
        "255",
        "run and once: the connection to the node failed; otherwise they exit as the command did",
      ],
    ],
  },
  {
    title: "ENVIRONMENT",
    entries: [
      ...placeOptions(program),
      ["CLUSTER_CHECKOUT_DIR", "The default of what sync sends"],
      ["CLUSTER_LICENSE_KEY_PATH", "The file with the license key of an enterprise platform"],
      [
        "NO_COLOR",
        "If it is set and not empty, nothing is coloured; CI and TERM=dumb also stop redrawing",
      ],
      ["HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY", "The proxy for downloads"],
      ["NODE_EXTRA_CA_CERTS", "A file with further certificates to trust, in PEM"],
      ["TMPDIR", "The default of --workspace-dir"],
      ["XDG_STATE_HOME, XDG_CACHE_HOME", "What FILES calls ~/.local/state and ~/.cache"],
      ...(isInCloud(program) ? credentials : []),
    ],
  },
  {
    title: "FILES",
    entries: [
      [
        "~/.local/state/cluster-e2e",
        "A folder for each cluster, with its key, the known hosts, the log of what was done, and saved logs",
      ],
      ["~/.cache/cluster-e2e", "What can be made again, such as disk images"],
    ],
  },
];
