// Numbers and elements: everything that a person reads becomes a text node, never markup.

/** Make an element. `attributes` are set as such, `children` are elements or text. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== undefined) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** Replace what an element holds. */
export function fill(id, ...children) {
  document.getElementById(id).replaceChildren(...children);
}

const UNKNOWN = "?";
const scaled = (value, step, units) => {
  let at = 0;
  while (Math.abs(value) >= step && at < units.length - 1) { value /= step; at += 1; }
  return `${value >= 100 || Number.isInteger(value) ? value.toFixed(0) : value.toPrecision(3)} ${units[at]}`.trim();
};
const time = (seconds) => seconds < 60 ? `${Number(seconds.toPrecision(3))} s`
  : seconds < 5400 ? `${Math.round(seconds / 60)} min`
  : seconds < 172800 ? `${(seconds / 3600).toFixed(1)} h` : `${Math.round(seconds / 86400)} d`;
const UNITS = {
  percentunit: (value) => `${(value * 100).toFixed(value && Math.abs(value) < 0.1 ? 1 : 0)}%`,
  currencyUSD: (value) => `$${value.toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`,
  bytes: (value) => scaled(value, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]),
  Bps: (value) => scaled(value, 1000, ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"]),
  celsius: (value) => `${value.toFixed(0)} °C`,
  watt: (value) => scaled(value, 1000, ["W", "kW", "MW"]),
  s: time,
  "µs": (value) => time(value / 1e6),
  none: () => "",
  short: (value) => scaled(value, 1000, ["", "k", "M", "G"]),
};

/** A figure in its unit; what isn't known is shown as such, never as 0. */
export function figure(value, unit = "short") {
  return value === null || value === undefined || Number.isNaN(value) ? UNKNOWN : UNITS[unit](value);
}

/** A whole number with separators. */
export const count = (value) => value.toLocaleString("en-US");

/** A text whose `commands` stand between backticks. */
export function prose(text) {
  return element("span", {}, ...text.split("`").map((part, at) => at % 2 ? element("code", {}, part) : part));
}

/** A table. Columns are [title, cell of a row, "number" or undefined]; rows beyond `most` are counted. */
export function table(columns, rows, { most = 200, row = () => ({}), empty = "none" } = {}) {
  if (!rows.length) return element("p", { class: "soft" }, empty);
  const head = element("tr", {}, ...columns.map(([title, , kind]) => element("th", { class: kind }, title)));
  const lines = rows.slice(0, most).map((each) => element("tr", row(each),
    ...columns.map(([, cell, kind]) => element("td", { class: kind }, cell(each)))));
  const drawn = element("div", { class: "scroll" }, element("table", {}, element("thead", {}, head), element("tbody", {}, ...lines)));
  if (rows.length > most) drawn.append(element("p", { class: "soft" }, `and ${rows.length - most} more`));
  return drawn;
}

/** One figure with what it is. */
export function tile(title, value, kind = "") {
  return element("div", { class: `tile ${kind}` }, element("b", {}, value), title);
}

/** Colours of the theme, by their names in style.css. */
export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
