"use strict";
(() => {
  const find = (id) => document.getElementById(id);
  const [svg, log, form, cursor] = ["timeline", "log", "filter", "cursor"].map(find);
  const scroll = svg.parentElement;
  const startMs = Number(svg.dataset.start);
  const lengthMs = Number(svg.dataset.length);
  const lines = [...log.children].map((element) => ({
    element,
    ms: element.dataset.t === undefined ? undefined : Number(element.dataset.t),
    node: element.querySelector("b")?.textContent ?? "",
    unit: element.querySelector("i")?.textContent ?? "",
    text: element.textContent.toLowerCase(),
  }));
  let zoom = 1;
  let selected;

  const setZoom = (wanted, anchor = 0.5) => {
    const before = zoom;
    zoom = Math.min(400, Math.max(1, wanted));
    const middle = (scroll.scrollLeft + anchor * scroll.clientWidth) / before;
    svg.style.width = `${zoom * 100}%`;
    scroll.scrollLeft = middle * zoom - anchor * scroll.clientWidth;
    scroll.classList.toggle("zoomed", zoom >= 4);
    find("zoom").textContent = `${Math.round(zoom * 10) / 10}×`;
    if (form.elements.range.checked) filter();
  };
  const view = () => {
    const width = svg.getBoundingClientRect().width;
    const from = (scroll.scrollLeft / width) * lengthMs;
    return [from, from + (scroll.clientWidth / width) * lengthMs];
  };
  const filter = () => {
    const { node, unit, text, errors, range } = form.elements;
    const wanted = text.value.toLowerCase();
    const [from, to] = range.checked ? view() : [-Infinity, Infinity];
    let shown = 0;
    for (const line of lines) {
      const isShown =
        (node.value === "" || line.node === node.value) &&
        (unit.value === "" || line.unit === unit.value) &&
        (wanted === "" || line.text.includes(wanted)) &&
        (!errors.checked || line.element.classList.contains("e")) &&
        (!range.checked || (line.ms !== undefined && line.ms >= from && line.ms <= to));
      line.element.hidden = !isShown;
      if (isShown) shown += 1;
    }
    find("count").textContent = `${shown} of ${lines.length} lines`;
  };
  const select = (ms) => {
    selected = Math.min(lengthMs, Math.max(0, ms));
    const x = `${(selected / lengthMs) * 100}%`;
    cursor.setAttribute("x1", x);
    cursor.setAttribute("x2", x);
    let nearest;
    for (const line of lines) {
      // What a link leads to may be outside of the timeline.
      const distance = line.ms === undefined ? Infinity : Math.abs(line.ms - ms);
      line.element.classList.toggle("near", distance <= 2000);
      if (!line.element.hidden && distance < (nearest?.distance ?? Infinity))
        nearest = { distance, element: line.element };
    }
    nearest?.element.scrollIntoView({ block: "center" });
  };

  for (const name of ["node", "unit"]) {
    const values = [...new Set(lines.map((line) => line[name]))].filter(Boolean).sort();
    for (const value of values.slice(0, 500)) form.elements[name].append(new Option(value, value));
  }
  let drag;
  svg.addEventListener("click", (event) => {
    const hasMoved = drag?.hasMoved;
    drag = undefined;
    if (hasMoved) return;
    const box = svg.getBoundingClientRect();
    select(((event.clientX - box.left) / box.width) * lengthMs);
  });
  svg.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const box = scroll.getBoundingClientRect();
      setZoom(zoom * (event.deltaY < 0 ? 1.25 : 0.8), (event.clientX - box.left) / box.width);
    },
    { passive: false },
  );
  svg.addEventListener("keydown", (event) => {
    const step = lengthMs / zoom / 100;
    const actions = {
      "+": () => setZoom(zoom * 2),
      "=": () => setZoom(zoom * 2),
      "-": () => setZoom(zoom / 2),
      0: () => setZoom(1),
      ArrowLeft: () => select((selected ?? 0) - step),
      ArrowRight: () => select((selected ?? 0) + step),
    };
    if (actions[event.key] === undefined || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    actions[event.key]();
    svg.focus({ preventScroll: true });
  });
  svg.addEventListener("pointerdown", (event) => {
    drag = { x: event.clientX, left: scroll.scrollLeft, isOn: event.pointerType === "mouse" };
  });
  addEventListener("pointermove", (event) => {
    if (!drag?.isOn) return;
    const moved = event.clientX - drag.x;
    drag.hasMoved ||= Math.abs(moved) > 3;
    if (drag.hasMoved) scroll.scrollLeft = drag.left - moved;
  });
  // A click follows, which shall select nothing if the drawing has moved.
  for (const type of ["pointerup", "pointercancel"])
    addEventListener(type, () => drag && (drag.isOn = false));
  scroll.addEventListener("scroll", () => {
    if (form.elements.range.checked) requestAnimationFrame(filter);
  });
  for (const link of document.querySelectorAll("a[data-t]"))
    link.addEventListener("click", (event) => {
      event.preventDefault();
      select(Number(link.dataset.t));
    });
  find("in").addEventListener("click", () => setZoom(zoom * 2));
  find("out").addEventListener("click", () => setZoom(zoom / 2));
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(filter));
  document.body.classList.add("scripted");
  filter();
})();
