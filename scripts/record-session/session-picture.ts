import type { Run } from "./screen.ts";

/** What the terminal showed from this time on. */
export interface Frame {
  readonly ms: number;
  readonly rows: readonly (readonly Run[])[];
}

const rowHeight = 18;
const columnWidth = 7.85;
const margin = 14;
/** A spinner turns ten times a second, which would only make the file larger. */
const leastPauseMs = 200;

/**
 * Draws a session as an SVG that plays once, in light or dark like the reader's system. Whatever doesn't play it, such as a printer, shows the
 * last picture.
 */
export function sessionPicture(frames: readonly Frame[], columns: number): string {
  const shown = thinned(frames);
  const endMs = shown.at(-1)?.ms ?? 0;
  const height = Math.max(...shown.map(({ rows }) => rows.length)) * rowHeight + 2 * margin;
  const width = Math.ceil(columns * columnWidth) + 2 * margin;
  const rowCount = Math.max(...shown.map(({ rows }) => rows.length));
  const texts = Array.from({ length: rowCount }, (_, row) => rowTexts(shown, row, endMs)).flat();
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="A session in a terminal">
<style>
  rect { fill: #f6f8fa; stroke: #d0d7de }
  text { white-space: pre; font: 13px ui-monospace, SFMono-Regular, Menlo, 'DejaVu Sans Mono', monospace; fill: #1f2328 }
  .bold { font-weight: 700 } .dim, .c90 { fill: #59636e }
  .c31 { fill: #cf222e } .c32 { fill: #1a7f37 } .c33 { fill: #9a6700 } .c36 { fill: #1b7c83 }
  .passing { visibility: hidden }
  @media (prefers-color-scheme: dark) {
    rect { fill: #0d1117; stroke: #3d444d }
    text { fill: #f0f6fc } .dim, .c90 { fill: #9198a1 }
    .c31 { fill: #ff7b72 } .c32 { fill: #3fb950 } .c33 { fill: #d29922 } .c36 { fill: #39c5cf }
  }
  @media (prefers-reduced-motion: reduce) { text { visibility: visible !important } .passing { display: none } }
</style>
<rect x="0.5" y="0.5" width="${width - 1}" height="${height - 1}" rx="6"/>
${texts.join("\n")}
</svg>
`;
}

/** The last frame of each pause. */
function thinned(frames: readonly Frame[]): readonly Frame[] {
  return frames.filter((frame, index) => {
    const next = frames[index + 1];
    return (
      next === undefined || Math.floor(next.ms / leastPauseMs) > Math.floor(frame.ms / leastPauseMs)
    );
  });
}

/** What one row shows over time, each text with the time from which and until which it is there. */
function rowTexts(frames: readonly Frame[], row: number, endMs: number): readonly string[] {
  const spans: { readonly text: string; readonly fromMs: number }[] = [];
  for (const { ms, rows } of frames) {
    const text = (rows[row] ?? []).map(drawn).join("");
    if (text !== (spans.at(-1)?.text ?? "")) spans.push({ text, fromMs: ms });
  }
  const y = margin + row * rowHeight + 13;
  return spans.flatMap(({ text, fromMs }, index) => {
    const untilMs = spans[index + 1]?.fromMs ?? endMs;
    if (text === "") return [];
    const isLast = index === spans.length - 1;
    const times = isLast
      ? `to="hidden" begin="0s" dur="${seconds(fromMs)}"`
      : `to="visible" begin="${seconds(fromMs)}" dur="${seconds(untilMs - fromMs)}"`;
    const play = isLast && fromMs < 10 ? "" : `<set attributeName="visibility" ${times}/>`;
    return [
      `<text x="${margin}" y="${y}"${isLast ? "" : ' class="passing"'}>${text}${play}</text>`,
    ];
  });
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(2)}s`;

function drawn({ style, text }: Run): string {
  const escaped = text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  return style === "plain" ? escaped : `<tspan class="${style}">${escaped}</tspan>`;
}
