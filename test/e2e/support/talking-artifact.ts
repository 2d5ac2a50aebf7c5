/**
 * A release artifact of the enterprise variant that installs nothing. Its install script prints the whole
 * configuration.
 */
import { join } from "node:path";

/** `lines`: shell that the install script runs in the end. */
export async function writeTalkingArtifact(folder: string, lines: string): Promise<string> {
  const path = join(folder, "talking.sh");
  const encoded = Buffer.from(lines).toString("base64");
  await Bun.write(
    path,
    `#!/bin/bash
# variant: enterprise
set -e
case $1 in
  --version) echo '{"variant": "enterprise", "version": "1"}' ;;
  --genconf)
    mkdir -p genconf/serve
    {
      echo '#!/bin/bash'
      echo 'cat <<"END"'
      cat genconf/config.yaml
      echo END
      base64 -d <<<${encoded}
    } >genconf/serve/cluster_install.sh
    ;;
esac
`,
  );
  return path;
}
