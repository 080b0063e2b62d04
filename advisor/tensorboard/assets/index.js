// The tab: chooses a run, has its report made, and shows it in a frame of its own.
// All texts are set as text, never as markup. The report's frame has no access to TensorBoard: it is sandboxed, and its policy allows
// its own scripts only.

const CHOSEN = "tfdata-advisor-run"; // key in the session's storage
const parts = {};
let runs = [];
let turn = 0; // the latest choice; answers to earlier ones are dropped

export async function render() {
  document.documentElement.lang = "en";
  document.title = "tf.data";
  followTheme();
  const style = element("link", { rel: "stylesheet", href: url("tab.css") });
  document.head.append(style);
  await new Promise((done) => { style.onload = style.onerror = done; });
  document.body.replaceChildren(bar(), part("notes", "ul"), part("state", "div", { role: "status" }), part("report", "main"));
  await loadRuns();
}

function bar() {
  const reload = part("reload", "button", { type: "button", textContent: "Reload runs" });
  const select = part("runs", "select", { id: "runs" });
  reload.addEventListener("click", loadRuns);
  select.addEventListener("change", () => choose(select.value));
  const open = part("open", "a", { target: "_blank", rel: "noopener", textContent: "Open in a new tab", hidden: true });
  return element("header", {}, element("label", { htmlFor: "runs", textContent: "Run" }), select, part("facts", "span"), open, reload);
}

async function loadRuns() {
  turn += 1;
  parts.reload.disabled = true;
  say("Looking for runs …");
  const found = await ask("runs");
  parts.reload.disabled = false;
  runs = found.runs || [];
  parts.notes.replaceChildren(...(found.notes || []).map((note) => element("li", { textContent: note })));
  parts.runs.replaceChildren(...groups());
  parts.runs.disabled = !runs.length;
  if (found.problem) return complain(found.problem, loadRuns);
  if (!runs.length) return explainEmpty(found.logdir);
  const earlier = runs.find((run) => run.id === remembered());
  return choose((earlier || runs[0]).id);
}

// runs of the advisor apart from others, if there are both
function groups() {
  const option = (run) => element("option", { value: run.id, textContent: run.name });
  const kinds = [["Captured by tfdata-advisor", true], ["Other profiles", false]];
  const filled = kinds.map(([label, kind]) => [label, runs.filter((run) => run.is_recorded === kind)]).filter(([, some]) => some.length);
  if (filled.length < 2) return runs.map(option);
  return filled.map(([label, some]) => element("optgroup", { label }, ...some.map(option)));
}

async function choose(id) {
  const mine = ++turn;
  const run = runs.find((one) => one.id === id);
  parts.runs.value = id;
  remember(id);
  parts.facts.textContent = factsOf(run);
  const timer = wait(run.name);
  const answer = await ask(`analysis?run=${encodeURIComponent(id)}`);
  clearInterval(timer);
  if (mine !== turn) return;
  if (answer.problem) return complain(answer.problem, () => choose(id));
  parts.state.replaceChildren();
  parts.open.href = url(answer.report);
  parts.open.hidden = false;
  showReport(`Report of ${run.name}`);
}

function showReport(title) {
  const frame = element("iframe", { src: `${parts.open.href}&theme=${document.documentElement.dataset.theme}`, title });
  frame.setAttribute("sandbox", "allow-scripts allow-downloads");
  parts.report.replaceChildren(frame);
}

function factsOf(run) {
  const hosts = run.hosts > 1 ? `${run.hosts} hosts` : run.hosts === 1 ? "1 host" : "no profile";
  const origin = run.is_recorded ? "captured by tfdata-advisor" : "profile without a recording";
  const written = run.written_ms === null ? [] : [new Date(run.written_ms).toLocaleString()];
  return [...written, hosts, run.size, origin].join(" · ");
}

// the seconds that an analysis takes so far, from the second one on
function wait(name) {
  say(`Analysing ${name} …`);
  const mine = turn;
  const start = Date.now();
  const timer = setInterval(() => {
    if (mine !== turn) clearInterval(timer);
    else parts.state.firstChild.textContent = `Analysing ${name} … ${Math.round((Date.now() - start) / 1000)} s`;
  }, 1000);
  return timer;
}

function say(text) {
  clearReport();
  parts.state.replaceChildren(element("p", { textContent: text }));
}

function complain(sentence, again) {
  clearReport();
  const button = element("button", { type: "button", textContent: "Try again" });
  button.addEventListener("click", again);
  parts.state.replaceChildren(element("p", { className: "problem", textContent: sentence }), button);
}

function explainEmpty(logdir) {
  parts.facts.textContent = "";
  parts.state.replaceChildren(
    element("h1", { textContent: "No profile yet" }),
    element("p", { textContent: `There is no profile in ${logdir} (no plugins/profile/*/*.xplane.pb). Make one:` }),
    element("ul", {},
      element("li", {}, "from a script: ", code(`advisor analyze --out ${logdir}/run train.py`)),
      element("li", {}, "in Keras: ", code(`keras.callbacks.TensorBoard("${logdir}", profile_batch=(20, 58))`)),
      element("li", {}, "from a job with a profiler server: ", code(`advisor capture --out ${logdir} grpc://HOST:PORT`))),
    element("p", { textContent: "Then reload the runs." }),
  );
}

function clearReport() {
  parts.report.replaceChildren();
  parts.open.hidden = true;
}

// TensorBoard's theme; in another page, the system's
function followTheme() {
  let body = null;
  try { body = window.parent.document.body; } catch { /* TensorBoard is in a page of another site */ }
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const apply = () => {
    const isDark = body && body !== document.body ? body.classList.contains("dark-mode") : dark.matches;
    const theme = isDark ? "dark" : "light";
    if (theme === document.documentElement.dataset.theme) return;
    document.documentElement.dataset.theme = theme;
    const frame = parts.report && parts.report.firstChild;
    if (frame) showReport(frame.title);
  };
  apply();
  dark.addEventListener("change", apply);
  if (body) new MutationObserver(apply).observe(body, { attributes: true, attributeFilter: ["class"] });
}

async function ask(path) {
  try {
    const response = await fetch(url(path), { headers: { Accept: "application/json" } });
    return await response.json();
  } catch {
    return { problem: "TensorBoard does not answer: look whether it still runs." };
  }
}

function remembered() {
  try { return sessionStorage.getItem(CHOSEN); } catch { return null; }
}

function remember(id) {
  try { sessionStorage.setItem(CHOSEN, id); } catch { /* a browser that keeps nothing */ }
}

function url(path) {
  return new URL(path, import.meta.url).href;
}

function code(text) {
  return element("code", { textContent: text });
}

function part(name, tag, properties = {}) {
  parts[name] = element(tag, { className: name, ...properties });
  return parts[name];
}

function element(tag, properties = {}, ...children) {
  const { role, ...others } = properties;
  const made = Object.assign(document.createElement(tag), others);
  if (role) made.setAttribute("role", role);
  made.append(...children);
  return made;
}
