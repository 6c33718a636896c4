// The page: loads from this server every 15 s and answers four questions. It sends names, never queries.

import { draw, redraw, resize } from "./charts.js";
import { Grid } from "./grid.js";
import { count, element, figure, fill, prose, table, tile } from "./words.js";

const REFRESH_MS = 15000;
const PARTS = ["fabric", "storage", "scheduler"];
const at = (id) => document.getElementById(id);
let overview = null;
let question = "health"; // the last of the four that was shown

async function load(path) {
  const answer = await fetch(path, { cache: "no-store" });
  const found = await answer.json();
  if (!answer.ok) throw new Error([found.problem, found.hint].filter(Boolean).join(" — "));
  return found;
}

function problem(text) {
  at("problem").hidden = !text;
  at("problem").textContent = text;
}

// Where the page is: #health, #money, #jobs/7, #next/fabric, #node/gpu001
const place = () => {
  const [tab, ...rest] = decodeURIComponent(location.hash.slice(1)).split("/");
  return { tab: tab || "health", of: rest.join("/") };
};

const grid = new Grid(at("grid"), at("grid-line"), at("grid-legend"), (name) => { location.hash = `node/${encodeURIComponent(name)}`; });

function by(list, key) {
  const groups = new Map();
  for (const each of list) {
    if (!groups.has(key(each))) groups.set(key(each), []);
    groups.get(key(each)).push(each);
  }
  return groups;
}

const MOST_PLACES = 6, MOST_FOUND = 12;
const places = (names) => names.slice(0, MOST_PLACES).join(", ") + (names.length > MOST_PLACES ? ` and ${names.length - MOST_PLACES} more` : "");

function health({ now, alerts, silent }) {
  const firing = alerts.filter((each) => each.state === "firing");
  const severe = firing.filter((each) => each.severity === "critical").length;
  const out = (state) => now.nodes.filter((node) => node.state === state).length;
  const gpus = now.nodes.reduce((sum, node) => sum + (node.gpus ?? 0), 0);
  const held = now.jobs.reduce((sum, job) => sum + job.gpus, 0);
  fill("health-tiles",
    tile("nodes answer", `${count(now.nodes.length - silent.length)} of ${count(now.nodes.length)}`, silent.length ? "bad" : "good"),
    tile("critical alerts", figure(severe), severe ? "bad" : "good"),
    tile("warnings", figure(firing.length - severe), firing.length - severe ? "warn" : "good"),
    tile("drained", figure(out("drained")), out("drained") ? "warn" : ""),
    tile("down", figure(out("down")), out("down") ? "bad" : ""),
    tile("GPUs held", `${count(held)} of ${count(gpus)}`),
    tile("jobs with GPUs", count(now.jobs.length)));
  const since = firing.map((each) => each.since).filter((each) => each !== null);
  const oldest = (several) => Math.min(...several.map((a) => a.since ?? Infinity));
  fill("alerts", table([
    ["alert", ([a]) => element("b", {}, a.name)],
    ["where", (several) => places(several.map((a) => a.where))],
    ["for", (several) => since.length ? figure(Math.max(now.at - oldest(several), 0), "s") : "?", "number"],
    ["means", ([a]) => prose(a.means)],
    ["do first", ([a]) => prose(a.do[0] ?? "")],
  ], [...by(firing, (each) => each.name).values()], { row: ([a]) => ({ class: a.severity }), most: 50, empty: "no alert fires" }));
  const counts = new Map();
  for (const each of firing) counts.set(each.node, (counts.get(each.node) ?? 0) + 1);
  grid.show(now.nodes, silent, counts);
  at("grid-title").textContent = `${count(now.nodes.length)} nodes`;
}

const jobLink = (job) => element("a", { href: `#jobs/${encodeURIComponent(job.job)}` }, job.job);
const dollars = (value) => figure(value, "currencyUSD");
const share = (value) => figure(value, "percentunit");
const unknownJobs = "its jobs aren't known";
const jobColumns = [
  ["job", jobLink], ["name", (j) => j.name, "name"], ["account", (j) => j.account], ["user", (j) => j.user],
  ["pool", (j) => j.pools.join(" ")],
  ["running", (j) => figure(j.running_s, "s"), "number"],
  ["GPUs", (j) => `${figure(j.gpus)}${j.measured_gpus < j.gpus ? "*" : ""}`, "number"],
  ["idle", (j) => figure(j.idle_gpus), "number"], ["SM", (j) => share(j.active), "number"], ["tensor", (j) => share(j.tensor), "number"],
  ["$/h", (j) => dollars(j.usd_per_hour), "number"], ["wasted $/h", (j) => dollars(j.wasted_usd_per_hour), "number"],
];

function money({ now }) {
  const unused = Object.entries(now.unused_usd_per_hour);
  fill("money-tiles",
    tile("all nodes, an hour", dollars(now.usd_per_hour)),
    tile("held by jobs", dollars(now.held_usd_per_hour)),
    tile("wasted by jobs", dollars(now.wasted_usd_per_hour), now.wasted_usd_per_hour > 0 ? "warn" : ""),
    ...unused.map(([state, usd]) => tile(`${state}, held by no job`, dollars(usd), usd > 0 ? "warn" : "")));
  fill("wasters", element("h3", {}, "Jobs, the worst first"), table(jobColumns, now.jobs, { most: 15, empty: now.knows_jobs ? "no job holds GPUs" : unknownJobs }));
  const idle = now.nodes.filter((node) => node.unused_usd_per_hour > 0);
  fill("unused", element("h3", {}, "Nodes that are paid and not used"), table([
    ["node", (n) => element("a", { href: `#node/${encodeURIComponent(n.name)}` }, n.name)], ["pool", (n) => n.pool], ["state", (n) => n.state],
    ["GPUs", (n) => figure(n.gpus), "number"], ["free", (n) => share(n.free), "number"],
    ["$/h", (n) => dollars(n.usd_per_hour), "number"], ["unused $/h", (n) => dollars(n.unused_usd_per_hour), "number"],
  ], idle, { most: 20 }));
}

function jobs({ now }) {
  const wanted = at("find-job").value.toLowerCase();
  const { tab, of } = place();
  const chosen = tab === "jobs" && of && !wanted;
  const found = now.jobs.filter((job) => chosen ? job.job === of
    : `${job.job} ${job.name} ${job.user} ${job.account}`.toLowerCase().includes(wanted));
  fill("job-list", table(jobColumns, found, { empty: !now.knows_jobs ? unknownJobs : chosen ? "it doesn't run with GPUs now" : "no job with GPUs runs" }),
    ...(chosen ? [element("a", { href: "#jobs" }, `all ${count(now.jobs.length)} jobs`)] : []));
}

const findingBox = (each) => element("div", { class: "finding" },
  element("h3", {}, each.title), element("p", { class: "soft" }, prose(each.means)),
  element("div", { class: "places" }, ...each.places.slice(0, MOST_FOUND).map(([where, value]) =>
    element("span", {}, `${where || "the cluster"} `, element("b", {}, figure(value, each.unit)))),
  ...(each.places.length + each.more > MOST_FOUND ? [`and ${each.places.length + each.more - MOST_FOUND} more`] : [])));

function next(found) {
  const pending = found.alerts.filter((each) => each.state === "pending");
  fill("coming",
    ...pending.map((each) => element("div", { class: "finding" }, element("h3", {}, `${each.name}: fires soon`),
      element("p", {}, each.where), element("p", { class: "soft" }, prose(each.means)))),
    ...found.next.map(findingBox),
    ...(pending.length + found.next.length ? [] : [element("p", { class: "soft" }, "Nothing points to it: no disk fills up, no link flaps, no GPU reports errors.")]));
  const pools = [...new Set(found.now.nodes.map((node) => node.pool))].sort();
  const chosen = place().of.replace(/^pool\//, "");
  at("pool").replaceChildren(element("option", { value: "" }, "–"), ...pools.map((pool) =>
    element("option", { value: pool, ...(pool === chosen ? { selected: "" } : {}) }, pool)));
}

function show() {
  if (!overview) return;
  const { now } = overview;
  at("cluster").textContent = now.cluster;
  document.title = `${now.cluster} — gcluster`;
  at("age").textContent = new Date(now.at * 1000).toLocaleTimeString("en-GB");
  const notes = [...now.problems];
  if (now.simulated) notes.push("GPUs are simulated: their figures are made up by a double, SM is from the jobs' processes");
  if (now.unpriced_pools.length) notes.push(`the price of ${now.unpriced_pools.join(", ")} isn't known`);
  at("notes").textContent = notes.join(" · ");
  health(overview); money(overview); jobs(overview); next(overview);
}

async function board(target, name, of = "") {
  const found = await load(`api/board?${new URLSearchParams({ name, hours: at("hours").value, of })}`);
  draw(target, found);
  return found;
}

async function charts() {
  const { tab, of } = place();
  try {
    if (tab === "node") {
      await board(document.querySelector("#node .charts"), "node", of);
    } else if (tab === "jobs") {
      if (!of) return;
      const found = await board(document.querySelector("#jobs .charts"), "job", of);
      fill("slow", ...(found.slow.length ? found.slow.map(findingBox)
        : [element("p", { class: "soft" }, "Nothing is found that slows it down now: its GPUs are busy, cool and evenly used, or not measured.")]));
    } else if (tab === "next") {
      const pool = of.startsWith("pool/") ? of.slice(5) : "";
      if (pool || PARTS.includes(of)) await board(at("part"), pool ? "pool" : of, pool);
    } else {
      await board(document.querySelector(`#${tab} .charts`), tab === "money" ? "money" : "cluster");
    }
    problem("");
  } catch (error) { problem(error.message); }
}

async function refresh() {
  try {
    overview = await load("api/now");
    problem("");
    show();
  } catch (error) { problem(error.message); }
}

function go() {
  const { tab, of } = place();
  if (tab !== "node") {
    if (!at(tab)?.matches("section")) { location.hash = "health"; return; }
    question = tab;
  }
  for (const section of document.querySelectorAll("main > section")) section.hidden = section.id !== question;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.tab === question) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
  }
  for (const link of document.querySelectorAll("#parts a")) {
    if (link.hash === location.hash) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
  }
  if (tab === "node") {
    at("node-title").textContent = of;
    facts(of);
    if (!at("node").open) at("node").showModal();
  } else if (at("node").open) at("node").close();
  at("job").hidden = tab !== "jobs" || !of;
  if (tab === "jobs") at("job-title").textContent = of ? `Job ${of}` : "";
  show();
  grid.draw();
  charts();
}

function facts(name) {
  const node = overview?.now.nodes.find((each) => each.name === name);
  const alerts = overview?.alerts.filter((each) => each.node === name) ?? [];
  fill("node-facts", element("p", {}, node
    ? `${node.pool} · ${node.state || "no compute node"} · ${figure(node.gpus)} GPUs, ${share(node.free)} free · ${dollars(node.usd_per_hour)}/h` : "unknown"),
    table([["alert", (a) => a.name], ["state", (a) => a.state], ["means", (a) => prose(a.means)], ["do first", (a) => prose(a.do[0] ?? "")]], alerts,
      { row: (a) => ({ class: a.severity }), empty: "no alert" }));
}

function theme(dark) {
  document.documentElement.classList.toggle("dark", dark);
  at("theme").textContent = dark ? "Light" : "Dark";
  redraw();
  grid.draw();
}

function focusHealth(id) {
  if (question !== "health") { history.pushState(null, "", "#health"); go(); }
  at(id).focus();
}

function key(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select")
    || document.querySelector("dialog[open]")) return;
  const tabs = { 1: "health", 2: "money", 3: "jobs", 4: "next" };
  if (event.key in tabs) location.hash = tabs[event.key];
  else if (event.key === "/") { if (question === "jobs") at("find-job").focus(); else focusHealth("find-node"); }
  else if (event.key === "g") focusHealth("grid");
  else if (event.key === "t") theme(!document.documentElement.classList.contains("dark"));
  else if (event.key === "r") refresh().then(charts);
  else if (event.key === "?") at("help").showModal();
  else return;
  event.preventDefault();
}

at("theme").addEventListener("click", () => theme(!document.documentElement.classList.contains("dark")));
at("keys").addEventListener("click", () => at("help").showModal());
at("hours").addEventListener("change", charts);
at("find-node").addEventListener("input", (event) => { grid.filter = event.target.value.toLowerCase(); grid.at = -1; grid.draw(); });
at("find-job").addEventListener("input", () => overview && jobs(overview));
at("grid-by").addEventListener("change", (event) => { grid.by = event.target.value; grid.draw(); });
at("pool").addEventListener("change", (event) => { location.hash = event.target.value ? `next/pool/${encodeURIComponent(event.target.value)}` : "next"; });
at("node-close").addEventListener("click", () => at("node").close());
at("node").addEventListener("close", () => { if (place().tab === "node") location.hash = question; });
addEventListener("hashchange", go);
addEventListener("keydown", key);
addEventListener("resize", resize);
theme(matchMedia("(prefers-color-scheme: dark)").matches);
await refresh();
go();
setInterval(() => { if (!document.hidden) refresh().then(charts); }, REFRESH_MS);
document.documentElement.dataset.ready = "yes";
