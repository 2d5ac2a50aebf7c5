import { type Observations, limits } from "./observe.ts";

/** A command that was run. */
export interface Ran {
  readonly line: string;
  readonly status: string;
  readonly seconds: number;
  readonly output: string;
}

export interface Report {
  readonly region: string;
  readonly platform: string;
  /** Absent: EC2 itself. */
  readonly endpoint: string | undefined;
  readonly ran: readonly Ran[];
  /** Those of EC2, and those of the local cloud. */
  observations: readonly [Observations, Observations] | undefined;
  failure: string | undefined;
  left: readonly string[];
}

/** Everything that isn't as it should be, one line each. */
export function problemsOf({ observations, failure, left }: Report): readonly string[] {
  const [cloud, local] = observations ?? [];
  return [
    ...(failure === undefined ? [] : [`Failed: ${failure}`]),
    ...Object.entries(local?.answers ?? {})
      .filter(([question, answer]) => cloud?.answers[question] !== answer)
      .map(
        ([question, answer]) => `Differs: ${question}: ${cloud?.answers[question]}, not ${answer}`,
      ),
    ...Object.entries(cloud?.seconds ?? {})
      .filter(([event, seconds]) => seconds > (limits[event] ?? Infinity))
      .map(
        ([event, seconds]) =>
          `Too late: ${event} after ${seconds} s; the program allows ${limits[event]} s`,
      ),
    ...(left.length === 0 ? [] : [`Left: ${left.join(", ")}`]),
  ];
}

/** The report in Markdown, with whatever the commands printed. */
export function reportText(report: Report): string {
  const { region, platform, endpoint, ran, observations, left } = report;
  const problems = problemsOf(report);
  const [cloud, local] = observations ?? [];
  return `${[
    "# cluster-cloud on EC2",
    `${new Date().toISOString().slice(0, 16)} UTC, region ${region}, platform ${platform}, at ${endpoint ?? "EC2 itself"}.`,
    problems.length === 0
      ? "Everything works, and EC2 answers as the local cloud does."
      : problems.map((line) => `- ${line}`).join("\n"),
    `Left in the account: ${left.length === 0 ? "nothing" : left.join(", ")}.`,
    "## Commands",
    table(
      ["Command", "Status", "Seconds"],
      ran.map(({ line, status, seconds }) => [`\`${line}\``, status, seconds.toFixed(1)]),
    ),
    "## Answers",
    table(
      ["Question", "EC2", "Local cloud", "Same"],
      Object.entries(local?.answers ?? {}).map(([question, answer]) => {
        const found = cloud?.answers[question] ?? "";
        return [question, found, answer, found === answer ? "yes" : "**no**"];
      }),
    ),
    "## Seconds until",
    table(
      ["What", "EC2", "Local cloud", "Limit of the program"],
      Object.entries(cloud?.seconds ?? {}).map(([event, seconds]) =>
        [event, seconds, local?.seconds[event] ?? "", limits[event] ?? ""].map(String),
      ),
    ),
    "## Output",
    ...ran.map(({ line, output }) => `\`\`\`\`text\n$ ${line}\n${output.trimEnd()}\n\`\`\`\``),
  ].join("\n\n")}\n`;
}

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
