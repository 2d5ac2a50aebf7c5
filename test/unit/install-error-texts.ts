/** The texts of errors of an installation, as `message → hint`. */
import { type ErrorId } from "../../src/errors.ts";
import { assertVariant } from "../../src/platform/artifact/artifact-head.ts";
import { artifactUnreachable, unreachable } from "../../src/platform/artifact/artifact-request.ts";
import { answerFailure } from "../../src/system/files/download.ts";
import { parseArtifactVersion } from "../../src/platform/artifact/artifact-version.ts";
import { assertNotFailed } from "../../src/platform/readiness/not-ready.ts";
import { failed, type Failing, genconf, head, sync } from "./error-causes.ts";

type Row = readonly [Failing, string];

export const installTexts = {
  "artifact-unreachable": [
    [
      () =>
        artifactUnreachable("https://host/a.sh", "the server redirects more than 10 times.", {}),
      "Cannot read the artifact https://host/a.sh: the server redirects more than 10 times. → Check the URL, or download the file yourself and pass its path.",
    ],
    [
      () => unreachable("https://host/a.sh", answerFailure(400)),
      "Cannot read the artifact https://host/a.sh: the server answered (HTTP 400). → Check the URL, or download the file yourself and pass its path.",
    ],
    [
      () => unreachable("https://host/a.sh", answerFailure(401)),
      "Cannot read the artifact https://host/a.sh: the server requires a login (HTTP 401). → Check the user name or the token in the URL. If it is a signed URL that has expired, get a new one.",
    ],
    [
      () => unreachable("https://host/a.sh", answerFailure(403)),
      "Cannot read the artifact https://host/a.sh: the server denies access (HTTP 403). → Check the user name or the token in the URL. If it is a signed URL that has expired, get a new one.",
    ],
    [
      () => unreachable("https://host/a.sh", answerFailure(410)),
      "Cannot read the artifact https://host/a.sh: the server no longer has the file (HTTP 410). → Check the URL.",
    ],
    [
      () => unreachable("https://host/a.sh", answerFailure(404)),
      "Cannot read the artifact https://host/a.sh: the server has no such file (HTTP 404). → Check the URL.",
    ],
    [
      () => unreachable("https://host/a.sh", answerFailure(503)),
      "Cannot read the artifact https://host/a.sh: the server failed (HTTP 503). → Check the URL, or download the file yourself and pass its path.",
    ],
  ],
  "artifact-invalid": [
    [
      () => head("<html>"),
      "a.sh is not a release artifact: it is a web page. → Pass the installer generator script itself, or the folder of a platform; a URL must lead directly to the script, without a login or a download page.",
    ],
    [
      () => head(""),
      "a.sh is not a release artifact: it is empty. → Pass the installer generator script itself, or the folder of a platform; a URL must lead directly to the script, without a login or a download page.",
    ],
    [
      () => head("PK"),
      "a.sh is not a release artifact: it does not begin like a script (#!). → Pass the installer generator script itself, or the folder of a platform; a URL must lead directly to the script, without a login or a download page.",
    ],
    [
      () => parseArtifactVersion("nothing"),
      `The output of the artifact's --version contains neither a version nor a variant: "nothing" → Make sure that it is a release artifact (an installer generator script), or download it again.`,
    ],
    [
      () => parseArtifactVersion('{"version": "1", "variant": "odd"}'),
      'The artifact reports the unknown variant "odd". → ',
    ],
  ],
  "variant-mismatch": [
    [
      () => assertVariant("oss", "enterprise", "a.sh"),
      "The artifact a.sh is the oss variant, but `variant` is enterprise. → Pass `variant oss`, or use the enterprise artifact.",
    ],
  ],
  "configuration-refused": [
    [
      async () => genconf(1, "resolvers: must be a list\n", ""),
      "The artifact refused the cluster configuration:\n  resolvers: must be a list → Change `extraConfig` or `genconfDir` accordingly.",
    ],
  ],
  "install-failed": [
    [
      () =>
        assertNotFailed([failed("the install script exited with status 7", ["no such package"])]),
      "The installation failed on master_0: the install script exited with status 7.\nThe last lines of its log:\n    no such package → The whole log is /var/lib/cluster-e2e/install.log on that node.",
    ],
    [
      () => assertNotFailed([failed("the installer was interrupted", []), failed("it hangs", [])]),
      "The installation failed on master_0 (and on master_0): the installer was interrupted. → The whole log is /var/lib/cluster-e2e/install.log on that node.",
    ],
  ],
  "not-installed": [
    [
      async () => sync(0, "# layout cluster\n# version\n", ""),
      "The platform is not installed on master_0 yet: the installation has not begun. → Run the wait command, then sync again.",
    ],
  ],
} as const satisfies Partial<Record<ErrorId, readonly Row[]>>;
