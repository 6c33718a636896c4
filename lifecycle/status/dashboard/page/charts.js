// Lines over time, by uPlot. Names of series are text nodes next to the drawing: uPlot never gets them.

import { colour, element, figure } from "./words.js";

const HEIGHT = 110;
const HUES = [214, 28, 145, 350, 268, 48, 190, 320, 95, 0];
const drawn = new Map();

const shade = (at) => `hsl(${HUES[at % HUES.length]} ${document.documentElement.classList.contains("dark") ? "75% 65%" : "65% 42%"})`;

/** Times of an axis: by the hour, by the day where it is longer than two. */
function clock(_, times) {
  const days = times.length > 1 && times.at(-1) - times[0] > 172800;
  const shown = days ? { day: "numeric", month: "short" } : { hour: "2-digit", minute: "2-digit" };
  return times.map((at) => new Date(at * 1000).toLocaleString("en-GB", shown));
}

function legend(chart, colours) {
  const entries = chart.lines.map((line, at) => {
    const swatch = element("i");
    swatch.style.background = colours[at];
    const value = element("b", {});
    const entry = element("span", { title: line.name }, swatch, `${line.name} `, value);
    return [entry, value];
  });
  const show = (at) => entries.forEach(([, value], n) => {
    const values = chart.lines[n].values;
    value.textContent = figure(at === null ? values.findLast((v) => v !== null) : values[at], chart.unit);
  });
  show(null);
  const list = element("div", { class: "legend" }, ...entries.map(([entry]) => entry));
  if (chart.more) list.append(element("span", {}, `and ${chart.more} more`));
  return [list, show];
}

function plot(box, chart, board) {
  const colours = chart.lines.map((_, at) => shade(at));
  const [list, show] = legend(chart, colours);
  const axis = { stroke: colour("soft"), grid: { stroke: colour("line"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
  const place = element("div");
  box.append(place, list);
  return new uPlot({
    width: Math.max(place.clientWidth, 200),
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false, points: { size: 5 } },
    scales: { x: { range: () => [board.start, board.end] }, y: { range: (_, low, high) => [Math.min(0, low ?? 0), high > 0 ? high * 1.08 : 1] } },
    axes: [{ ...axis, size: 22, space: 60, values: clock }, { ...axis, size: 62, values: (_, values) => values.map((v) => figure(v, chart.unit)) }],
    series: [{}, ...colours.map((stroke) => ({ stroke, width: 1.3, spanGaps: false, points: { show: chart.times.length < 2 } }))],
    hooks: { setCursor: [(u) => show(u.cursor.idx ?? null)] },
  }, [chart.times, ...chart.lines.map((line) => line.values)], place);
}

/** Draw the charts of a board into an element; those without data are named below. */
export function draw(place, board) {
  for (const old of drawn.get(place)?.plots ?? []) old.destroy();
  const full = board.charts.filter((chart) => chart.lines.length);
  const boxes = full.map((chart) => element("section", { class: "chart", "aria-label": chart.title }, element("h3", {}, chart.title)));
  const bare = board.charts.filter((chart) => !chart.lines.length).map((chart) => chart.title);
  place.replaceChildren(...boxes, ...(bare.length ? [element("p", { class: "soft" }, `No data: ${bare.join(" · ")}`)] : []));
  drawn.set(place, { board, plots: full.map((chart, at) => plot(boxes[at], chart, board)) });
}

/** Draw everything again, in the colours of the theme. */
export function redraw() {
  for (const [place, { board }] of drawn) draw(place, board);
}

/** Fit the charts to their places. */
export function resize() {
  for (const { plots } of drawn.values()) {
    for (const each of plots) {
      const width = each.root.parentElement.clientWidth;
      if (width && width !== each.width) each.setSize({ width, height: HEIGHT });
    }
  }
}
