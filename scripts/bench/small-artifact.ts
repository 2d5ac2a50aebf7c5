/** A release artifact that installs nothing, so that creations are all about machines. */
import { join } from "node:path";

const text = `#!/bin/bash
# variant: oss
case $1 in
  --version) echo '{"variant": "oss", "version": "1"}' ;;
  --genconf) mkdir -p genconf/serve && printf '#!/bin/sh\\nexit 0\\n' >genconf/serve/cluster_install.sh ;;
esac
`;

export async function writeSmallArtifact(folder: string): Promise<string> {
  const path = join(folder, "artifact.sh");
  await Bun.write(path, text);
  return path;
}
