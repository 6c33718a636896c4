// All nodes on one canvas: a square each, by pool. 2,000 of them are drawn in a few milliseconds.

import { colour, element, figure } from "./words.js";

const STATES = {
  "in use": "used", idle: "idle", reserved: "held", drained: "warn", down: "bad", "no answer": "gone", "": "good",
};
const NAMES = { "": "no compute node" };
const LABEL = 18;

export class Grid {
  /** @param opened called with a node's name. */
  constructor(canvas, line, legend, opened) {
    Object.assign(this, { canvas, line, legend, opened, nodes: [], cells: [], by: "state", filter: "", at: -1 });
    canvas.addEventListener("pointermove", (event) => this.choose(this.under(event)));
    canvas.addEventListener("click", (event) => this.open(this.under(event)));
    canvas.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.draw()).observe(canvas.parentElement);
  }

  /** Take nodes, those that don't answer, and how many alerts fire on each. */
  show(nodes, silent, alerts) {
    const gone = new Set(silent);
    this.nodes = nodes.map((node) => ({
      ...node, state: gone.has(node.name) && node.state !== "drained" ? "no answer" : node.state, alerts: alerts.get(node.name) ?? 0,
    })).sort((a, b) => a.pool.localeCompare(b.pool) || a.name.localeCompare(b.name, "en", { numeric: true }));
    this.draw();
  }

  /** Lay the squares out: pools one below the other, squares as large as fit on some 400 pixels. */
  layout(width) {
    const shown = this.nodes.filter((node) => !this.filter
      || `${node.name} ${node.pool} ${node.state}`.toLowerCase().includes(this.filter));
    const pools = new Map();
    for (const node of shown) (pools.get(node.pool) ?? pools.set(node.pool, []).get(node.pool)).push(node);
    const room = Math.max(400 - pools.size * LABEL, 120);
    const size = Math.max(6, Math.min(22, Math.floor(Math.sqrt(width * room / Math.max(shown.length, 1))) - 2));
    const columns = Math.max(1, Math.floor(width / (size + 2)));
    const labels = [];
    let y = 0;
    this.cells = [];
    for (const [pool, nodes] of pools) {
      labels.push([`${pool} (${nodes.length})`, y + 12]);
      y += LABEL;
      nodes.forEach((node, i) => this.cells.push({ node, x: i % columns * (size + 2), y: y + Math.floor(i / columns) * (size + 2) }));
      y += Math.ceil(nodes.length / columns) * (size + 2) + 4;
    }
    Object.assign(this, { size, columns });
    return { labels, height: Math.max(y, 30) };
  }

  draw() {
    const width = this.canvas.parentElement.clientWidth;
    if (!width) return;
    const { labels, height } = this.layout(width);
    const ratio = devicePixelRatio || 1;
    Object.assign(this.canvas, { width: width * ratio, height: height * ratio });
    this.canvas.style.height = `${height}px`;
    const pen = this.canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const colours = Object.fromEntries(["back", "text", "soft", ...Object.values(STATES)].map((name) => [name, colour(name)]));
    pen.fillStyle = colours.soft;
    pen.font = "12px system-ui, 'DejaVu Sans', sans-serif";
    for (const [text, y] of labels) pen.fillText(text, 0, y);
    for (const { node, x, y } of this.cells) {
      const share = this.by === "state" ? null : node[this.by];
      pen.globalAlpha = share === null ? 1 : 0.12 + 0.88 * share;
      pen.fillStyle = this.by === "state" ? colours[STATES[node.state] ?? "idle"] : share === null ? colours.back : colours.used;
      pen.fillRect(x, y, this.size, this.size);
      pen.globalAlpha = 1;
      if (node.alerts) { pen.strokeStyle = colours.bad; pen.lineWidth = 2; pen.strokeRect(x + 1, y + 1, this.size - 2, this.size - 2); }
      // Not by colour alone: what is out of service is crossed out.
      if (this.by === "state" && ["drained", "down", "no answer"].includes(node.state)) {
        pen.strokeStyle = colours.back; pen.lineWidth = 1.5; pen.beginPath();
        pen.moveTo(x + 2, y + this.size - 2); pen.lineTo(x + this.size - 2, y + 2);
        if (node.state !== "drained") { pen.moveTo(x + 2, y + 2); pen.lineTo(x + this.size - 2, y + this.size - 2); }
        pen.stroke();
      }
    }
    const chosen = this.cells[this.at];
    if (chosen) { pen.strokeStyle = colours.text; pen.lineWidth = 2; pen.strokeRect(chosen.x - 1, chosen.y - 1, this.size + 2, this.size + 2); }
    this.explain(colours);
  }

  explain(colours) {
    const counts = new Map();
    for (const { node } of this.cells) counts.set(node.state, (counts.get(node.state) ?? 0) + 1);
    const entry = (shade, text) => {
      const swatch = element("i");
      swatch.style.background = shade;
      return element("span", {}, swatch, text);
    };
    this.legend.replaceChildren(...this.by === "state"
      ? Object.keys(STATES).filter((s) => counts.has(s)).map((s) => entry(colours[STATES[s]], `${NAMES[s] ?? s} ${counts.get(s)}`))
      : [entry(colours.used, "the more the darker; what isn't known is empty")]);
  }

  under(event) {
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    return this.cells.findIndex((cell) => x >= cell.x && x <= cell.x + this.size && y >= cell.y && y <= cell.y + this.size);
  }

  choose(at) {
    if (at === this.at) return;
    this.at = at;
    const node = this.cells[at]?.node;
    this.line.textContent = node
      ? `${node.name} · ${node.pool} · ${node.state || NAMES[""]} · SM ${figure(node.active, "percentunit")} · free ${figure(node.free, "percentunit")}`
        + ` · ${figure(node.usd_per_hour, "currencyUSD")}/h` + (node.alerts ? ` · ${node.alerts} alerts` : "")
      : "Arrow keys choose a node, Enter opens it.";
    this.draw();
  }

  key(event) {
    const last = this.cells.length - 1;
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: this.columns, ArrowUp: -this.columns };
    if (event.key in steps) this.choose(Math.max(0, Math.min(last, this.at + (this.at < 0 ? 1 : steps[event.key]))));
    else if (event.key === "Home") this.choose(0);
    else if (event.key === "End") this.choose(last);
    else if (event.key === "Enter") this.open(this.at);
    else return;
    event.preventDefault();
  }

  open(at) {
    if (this.cells[at]) this.opened(this.cells[at].node.name);
  }
}
