/** The report as a person uses it: in Chromium, on a wide screen and a phone, in the dark, on paper, and without its script. */
import { expect, test } from "bun:test";
import { mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { reportParts } from "../../../../src/cluster/report/make-report.ts";
import { renderReport } from "../../../../src/cluster/report/render-report.ts";
import type { ClusterEvent, NewEvent } from "../../../../src/model/event.ts";
import { argumentLists } from "../../../support/argument-lists.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { until } from "../../../support/until.ts";

const chromium = Bun.which("chromium");
const isSkipped = chromium === null && process.env["CI"] === undefined;
const repository = join(import.meta.dir, "..", "..", "..", "..");

const start = Date.parse("2026-11-28T10:00:00Z");
const at = (seconds: number, event: NewEvent): ClusterEvent => ({
  ...event,
  at: new Date(start + seconds * 1000).toISOString(),
});
const nodes = ["master_0", "agent_0", "agent_1"];
const fault = {
  kind: "fault",
  id: "0123abcd",
  fault: "partition",
  nodes,
  seconds: 30,
  text: "partition between agent_0 and master_0, agent_1",
} as const;
const run = { kind: "run", command: "./test.sh", nodes: ["master_0"] } as const;
const output = [
  "<script>document.title='owned'</script>",
  ...Array.from({ length: 58 }, (_, index) => `    line ${index} of the test`),
  "AssertionError: no leader",
];
const events = [
  at(0, { kind: "command", line: "cluster-container once ./etcd -- ./test.sh" }),
  at(0, { kind: "phase", title: "Launch", course: "begun" }),
  at(15, { kind: "phase", title: "Launch", course: "done" }),
  at(15, { kind: "phase", title: "Install", course: "begun" }),
  at(50, { kind: "phase", title: "Install", course: "done" }),
  ...nodes.flatMap((node, index) => [
    at(15, { kind: "node", node, state: "running" }),
    at(20, { kind: "check", node, isReady: false, text: "etcd does not run" }),
    at(50 + index * 3, { kind: "check", node, isReady: true, text: "ready" }),
  ]),
  at(60, { ...run, course: "begun" }),
  at(70, { ...fault, course: "begun" }),
  at(100, { ...fault, course: "healed", by: "nodes" }),
  at(120, { ...run, course: "failed", status: 1, output }),
];

async function html(): Promise<string> {
  const lines = (node: string) =>
    Array.from({ length: 120 }, (_, second) =>
      second === 75
        ? `${start / 1000 + 75}.000000 ${node} etcd[9]: request timed out, no leader`
        : `${start / 1000 + second}.000000 ${node} ${second % 2 ? "etcd" : "systemd"}[1]: line ${second}`,
    );
  const oom = `${start / 1000 + 110}.000000 agent_1 kernel: Out of memory: Killed process 812 (java)`;
  const core = `${start / 1000 - 3600}.000000 agent_1 systemd-coredump[9]: Process 7 (app) dumped core.`;
  const evil = `${start / 1000 + 111}.000000 agent_1 app[1]: <img src=x onerror="document.title='owned'"></script><script>document.title='owned'</script>`;
  const texts = nodes.map((node) => ({
    name: `${node}.journal.txt`,
    text: [...(node === "agent_1" ? [core, ...lines(node), oom, evil] : lines(node))].join("\n"),
  }));
  const xml =
    '<testsuite><testcase name="elects" time="8"/><testcase name="survives" time="40"><failure message="no leader for 30 s"/></testcase></testsuite>';
  return renderReport(
    await reportParts(
      {
        cluster: undefined,
        clusterId: "nightly",
        directory: "",
        file: "",
        texts,
        events,
        xml: [{ name: "junit.xml", text: xml }],
        result: { isGood: false, text: "The command exited with status 1." },
        facts: [["Cluster", "nightly"]],
        commands: [["Make this cluster again", "cluster-container once ./etcd -- ./test.sh"]],
        nowMs: start + 130_000,
      },
      neverAborted,
    ),
    neverAborted,
  );
}

test.skipIf(isSkipped)(
  `the report is zoomed, filtered, selected and printed${isSkipped ? " (no chromium here)" : ""}`,
  async () => {
    await using folder = await scratchFolder();
    const page = join(folder.path, "report.html");
    await Bun.write(page, await html());
    const pictures = resolve(repository, process.env["CLUSTER_E2E_SCREENSHOTS"] ?? folder.path);
    await mkdir(pictures, { recursive: true });
    const profile = join(folder.path, "profile");
    // All views share one Chromium, which writes to its profile until it has ended.
    await using _chromium = {
      [Symbol.asyncDispose]: async () => {
        Bun.WebView.closeAll();
        await until("Chromium has ended", () =>
          Promise.resolve(argumentLists().every((words) => !words.includes(profile))),
        );
      },
    };
    using view = new Bun.WebView({
      width: 1280,
      height: 960,
      backend: {
        type: "chrome",
        url: false,
        path: chromium ?? "chromium",
        stderr: "ignore",
        argv: ["--no-sandbox", "--no-first-run", "--disable-background-networking"],
      },
      dataStore: { directory: profile },
    });
    const size = async (width: number, height: number) =>
      view.cdp("Emulation.setDeviceMetricsOverride", {
        width,
        height,
        deviceScaleFactor: 1,
        mobile: width < 600,
      });
    const picture = async (name: string) => {
      const { data } = await view.cdp<{ data: string }>("Page.captureScreenshot", {});
      await Bun.write(join(pictures, `report-${name}.png`), Buffer.from(data, "base64"));
    };
    const evaluate = async (script: string) => view.evaluate<never>(`(() => { ${script} })()`);
    const shown = "[...document.querySelectorAll('#log p:not([hidden])')]";
    await view.navigate(`file://${page}`);
    await size(1280, 960);
    await picture("wide");
    expect(await evaluate(`return document.title`)).toBe("Cluster nightly: failed" as never);
    expect(await evaluate(`return ${shown}.length`)).toBe(363 as never);
    expect(await evaluate("return document.querySelectorAll('#log img').length")).toBe(0 as never);

    // The cause is on the first screen.
    const top = await evaluate(
      "return [...document.querySelectorAll('li')].filter((each) => each.getBoundingClientRect().bottom < innerHeight).map((each) => each.innerText).join('\\n')",
    );
    expect(top).toContain("out of memory" as never);
    // The times of test cases count from the command's beginning.
    expect(top).toContain("10:01:08.000 survives no leader for 30 s" as never);

    // The output shows its end, and keeps its indentation.
    const seen = await evaluate(
      "const box = document.querySelector('.output'); return [box.innerText, box.scrollTop, box.scrollHeight > box.clientHeight]",
    );
    expect(seen).toEqual([output.join("\n"), 0, true] as never);

    // Zoom, where the form is in sight.
    await size(1280, 1300);
    const width = "return document.getElementById('timeline').getBoundingClientRect().width";
    const before = Number(await evaluate(width));
    await view.click("#in");
    await view.click("#in");
    expect(Number(await evaluate(width)) / before).toBeWithin(3.9, 4.1);

    // A drag moves the drawing, and selects nothing.
    const middle = await evaluate(
      "const box = document.querySelector('.scroll').getBoundingClientRect(); return [box.left + box.width / 2, box.top + 40]",
    );
    const [x, y] = middle as readonly [number, number];
    const mouse = async (type: string, given: object) =>
      view.cdp("Input.dispatchMouseEvent", { type, x, y, button: "left", clickCount: 1, ...given });
    const scrolled = "return document.querySelector('.scroll').scrollLeft";
    const scrollLeft = Number(await evaluate(scrolled));
    await mouse("mousePressed", {});
    await mouse("mouseMoved", { x: x + 60, buttons: 1 });
    await mouse("mouseMoved", { x: x + 100, buttons: 1 });
    await mouse("mouseReleased", { x: x + 100 });
    expect(Number(await evaluate(scrolled))).toBe(scrollLeft - 100);
    expect(await evaluate("return document.querySelectorAll('.near').length")).toBe(0 as never);

    // Of the lines, those of the range in sight.
    await evaluate("document.querySelector('input[name=range]').click()");
    expect(Number(await evaluate(`return ${shown}.length`))).toBeWithin(80, 110);
    await evaluate("document.querySelector('input[name=range]').click()");

    // The wheel with Ctrl zooms where the mouse is; without, it scrolls the page.
    const wheel = { deltaX: 0, deltaY: 100, button: "none" };
    await mouse("mouseWheel", { ...wheel, modifiers: 2 });
    await until("the wheel zooms", async () => Number(await evaluate(width)) < before * 3.9);
    await evaluate("document.getElementById('timeline').focus({ preventScroll: true })");
    await view.press("0");
    expect(Number(await evaluate(width))).toBeWithin(before - 2, before + 2);

    // Filters.
    await evaluate(
      "const { node } = document.getElementById('filter').elements; node.value = 'agent_1'; node.dispatchEvent(new Event('input', { bubbles: true }))",
    );
    expect(await evaluate(`return ${shown}.length`)).toBe(123 as never);
    await evaluate(
      "const { unit } = document.getElementById('filter').elements; unit.value = 'kernel'; unit.dispatchEvent(new Event('input', { bubbles: true }))",
    );
    expect(await evaluate(`return ${shown}.length`)).toBe(1 as never);
    await view.click("button[type=reset]");
    await view.click("input[name=text]");
    await view.type("killed process");
    expect(await evaluate(`return ${shown}.map((each) => each.textContent).join()`)).toContain(
      "java" as never,
    );
    await view.click("button[type=reset]");
    await until(
      "all lines are shown again",
      async () => Number(await evaluate(`return ${shown}.length`)) === 363,
    );
    await view.click("input[name=errors]");
    expect(Number(await evaluate(`return ${shown}.length`))).toBeWithin(3, 8);
    expect(await evaluate(`return ${shown}.map((each) => each.textContent).join()`)).toContain(
      "Killed process 812" as never,
    );
    await view.click("button[type=reset]");

    await until(
      "all lines are shown again",
      async () => Number(await evaluate(`return ${shown}.length`)) === 363,
    );

    // A click on a moment selects its lines and scrolls to them.
    await evaluate(
      "const svg = document.getElementById('timeline'); const box = svg.getBoundingClientRect(); svg.dispatchEvent(new MouseEvent('click', { clientX: box.left + box.width * 76 / 122, clientY: box.top + 40, bubbles: true }))",
    );
    const near = "[...document.querySelectorAll('#log p.near')]";
    expect(await evaluate(`return ${near}.map((each) => each.textContent).join()`)).toContain(
      "no leader" as never,
    );
    await picture("selected");
    const inSight = `const box = ${near}[0].getBoundingClientRect(); return box.top < innerHeight && box.bottom > 0`;
    expect(await evaluate(inSight)).toBe(true as never);
    // The form that stays in sight is in front of them.
    const inFront =
      "const box = document.querySelector('#filter label').getBoundingClientRect(); return document.elementFromPoint(box.left + 5, box.top + box.height / 2)?.closest('#filter') !== null";
    expect(await evaluate(inFront)).toBe(true as never);

    // Arrows move the moment, a hundredth of what is in sight each time, and so does a finger.
    const cursor = "return document.querySelector('#cursor').getBoundingClientRect().left";
    await evaluate("scrollTo(0, 0); document.getElementById('timeline').focus()");
    const places = [Number(await evaluate(cursor))];
    for (const key of ["ArrowRight", "ArrowRight", "ArrowLeft"]) {
      await view.press(key);
      places.push(Number(await evaluate(cursor)));
    }
    const [from = 0, one = 0, two = 0, back = 0] = places;
    expect(one - from).toBeWithin(5, 20);
    expect(two - one).toBeWithin(5, 20);
    expect(Math.abs(back - one)).toBeLessThan(1);
    await view.cdp("Emulation.setTouchEmulationEnabled", { enabled: true });
    await evaluate("scrollTo(0, 0)");
    const spot = await evaluate(
      "const box = document.getElementById('timeline').getBoundingClientRect(); return [box.left + 300, box.top + 40]",
    );
    const [fingerX, fingerY] = spot as readonly [number, number];
    const touch = async (type: string, touchPoints: readonly object[]) =>
      view.cdp("Input.dispatchTouchEvent", { type, touchPoints });
    await touch("touchStart", [{ x: fingerX, y: fingerY }]);
    await touch("touchEnd", []);
    await until(
      "the finger moves the moment",
      async () => Math.abs(Number(await evaluate(cursor)) - fingerX) < 3,
    );
    await view.cdp("Emulation.setTouchEmulationEnabled", { enabled: false });

    // What was noticed leads to its line, also from before the first event.
    await evaluate("scrollTo(0, 0); document.querySelector('li a').click()");
    const nearest = `return ${near}.map((each) => each.textContent).join()`;
    expect(await evaluate(nearest)).toContain("dumped core" as never);
    expect(await evaluate(inSight)).toBe(true as never);

    // On a phone nothing is wider than the screen.
    await size(390, 844);
    await picture("phone");
    expect(Number(await evaluate("return document.documentElement.scrollWidth"))).toBeWithin(
      300,
      391,
    );
    const labels =
      "return [...document.querySelectorAll('.tick text')].map((each) => each.getBoundingClientRect()).filter(({ width }) => width > 0).map(({ left, right }) => [left, right])";
    const times = await view.evaluate<(readonly [number, number])[]>(`(() => { ${labels} })()`);
    expect(times.length).toBeGreaterThan(1);
    for (const [index, [left]] of times.entries())
      expect(left).toBeGreaterThan(times[index - 1]?.[1] ?? 0);
    await size(1280, 960);

    const dark = { media: "", features: [{ name: "prefers-color-scheme", value: "dark" }] };
    await view.cdp("Emulation.setEmulatedMedia", dark);
    await evaluate("scrollTo(0, 0)");
    await picture("dark");
    const colour = await evaluate("return getComputedStyle(document.body).backgroundColor");
    expect(colour).toBe("rgb(20, 23, 26)" as never);

    // On paper: errors and selected lines, and no form.
    await view.cdp("Emulation.setEmulatedMedia", { media: "print", features: [] });
    await picture("print");
    const printed =
      "return [...document.querySelectorAll('#log p')].filter((each) => getComputedStyle(each).display !== 'none').length";
    expect(Number(await evaluate(printed))).toBeWithin(3, 40);
    expect(
      await evaluate("return getComputedStyle(document.getElementById('filter')).display"),
    ).toBe("none" as never);

    // Without a script.
    await view.cdp("Emulation.setEmulatedMedia", { media: "", features: [] });
    await view.cdp("Emulation.setScriptExecutionDisabled", { value: true });
    await view.navigate(`file://${page}?plain`);
    await picture("plain");
    const { root } = await view.cdp<{ root: { nodeId: number } }>("DOM.getDocument", {});
    const { nodeIds } = await view.cdp<{ nodeIds: readonly number[] }>("DOM.querySelectorAll", {
      nodeId: root.nodeId,
      selector: "#log p:not([hidden])",
    });
    expect(nodeIds).toHaveLength(363);
  },
);
