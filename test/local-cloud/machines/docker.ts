/** Runs the docker command to its end and gives its output. Throws with docker's own words when it fails. */
export async function docker(words: readonly string[], stdin: Uint8Array | undefined): Promise<string> {
  const child = Bun.spawn(["docker", ...words], { stdin: stdin ?? "ignore", stdout: "pipe", stderr: "pipe" });
  const [stdout, stderr, status] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (status !== 0) throw new Error(`docker ${words[0]} failed (${status}): ${stderr.trim()}`);
  return stdout.trim();
}

export interface ContainerEnd {
  readonly instanceId: string;
  readonly exitCode: number;
}

interface DieEvent {
  readonly Actor: { readonly Attributes: Readonly<Record<string, string>> };
}

/** Tells of each container with this label that ends, from now on, until disposed of. */
export function watchContainerEnds(
  labels: { readonly cloud: string; readonly instance: string },
  ended: (end: ContainerEnd) => void,
): AsyncDisposable {
  const child = Bun.spawn(
    [
      // The shell ends docker when this process lets go of its stdin, even by being killed.
      "sh",
      "-c",
      'docker events "$@" & cat >/dev/null; kill $!',
      "watch",
      // docker begins to listen a moment after its start; what happened meanwhile is told all the same.
      `--since=${Math.floor(Date.now() / 1000)}`,
      "--filter=type=container",
      "--filter=event=die",
      `--filter=label=${labels.cloud}`,
      "--format={{json .}}",
    ],
    { stdin: "pipe", stdout: "pipe", stderr: "ignore" },
  );
  const following = followLines(child.stdout, (line) => {
    const { Attributes } = (JSON.parse(line) as DieEvent).Actor;
    const instanceId = Attributes[labels.instance];
    if (instanceId !== undefined) ended({ instanceId, exitCode: Number(Attributes["exitCode"]) });
  });
  return {
    [Symbol.asyncDispose]: async () => {
      await child.stdin.end();
      await Promise.all([child.exited, following]);
    },
  };
}

async function followLines(stream: ReadableStream<Uint8Array>, onLine: (line: string) => void): Promise<void> {
  const decoder = new TextDecoder();
  const kept = { text: "" };
  for await (const chunk of stream) {
    const lines = (kept.text + decoder.decode(chunk, { stream: true })).split("\n");
    kept.text = lines.pop() ?? "";
    for (const line of lines) onLine(line);
  }
}
