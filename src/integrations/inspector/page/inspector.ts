import type { Named, OwnerView } from '../messages.js';
import { visible } from '../../shared/inspection-words.js';
import { byId, named, setText, within } from './parts/dom.js';
import { count, counted, timeOfDay } from './parts/format.js';
import { Model, stopTimes } from './parts/model.js';
import { routeOf, VIEWS, type Route } from './parts/route.js';
import { Stream, type Connection } from './parts/stream.js';
import { ContentionView } from './views/contention.js';
import { DoctorView } from './views/doctor.js';
import { isSemaphore, LocksView, ROWS } from './views/locks.js';
import { LockView } from './views/lock.js';
import { ProcessView } from './views/process.js';
import { SemaphoresView } from './views/semaphores.js';
import { UnlockDialog } from './views/unlock-dialog.js';

/* The page: one stream of events, a model of what they told, and views that show it. */

const TICK_MS = 250;
const CALM_TICK_MS = 1_000;
const SEARCH_DELAY_MS = 250;

const model = new Model();
let route: Route = routeOf(location.hash);
let search = '';
let rows = ROWS;
let version: string | undefined;
let isDrawing = false;
let announceSearch = false;

const locks = new LocksView(model, (wanted) => {
  rows = wanted;
  openStream();
});
const dialog = new UnlockDialog(model, ({ name, length }) => {
  announce(`${visible(name)}${name.length < length ? '…' : ''} was freed.`);
  lock.focus();
});
const lock = new LockView(model, (freed: Named, owner: OwnerView) => dialog.ask(freed, owner));
const semaphores = new SemaphoresView(model);
const contention = new ContentionView(model);
const ownProcess = new ProcessView(model);
const doctor = new DoctorView(model);

const stream = new Stream({
  onEvent(event) {
    model.take(event);
    const { name } = event;
    if (name === 'hello') onHello();
    if (name === 'hello' || name === 'problems') showState();
    if (name === 'summary' && announceSearch) announceMatches();
    draw();
  },
  onConnection: showConnection,
});

function openStream(): void {
  const { lock: selected } = route;
  const select = selected === undefined ? {} : { [selected.by === 'id' ? 'id' : 'select']: selected.value };
  stream.open({ search, rows: String(rows), ...select });
}

function onHello(): void {
  const { hello } = model;
  if (hello === undefined) return;
  // Another version has another page.
  if (version !== undefined && version !== hello.version) location.reload();
  version = hello.version;
  const { name, host, pid } = hello.client;
  byId('client').replaceChildren(
    named(`${name === '' ? '' : `${name} · `}${host} · ${pid}${hello.user === null ? '' : ` · ${hello.user}`}`),
  );
}

const announce = (text: string): void => setText(byId('announcer'), text);

function announceMatches(): void {
  announceSearch = false;
  announce(search === '' ? '' : counted(model.summary?.matching ?? 0, 'name matches', 'names match'));
}

const STATES: Readonly<Record<Connection['kind'], string>> = {
  connecting: 'Connecting',
  live: 'Live',
  lost: 'Reconnecting since',
  paused: 'Paused',
  ended: 'Disconnected',
};

let connected: Connection['kind'] = 'connecting';
/** Time of the day at which the connection was lost. */
let lostAt: string | undefined;

/** The state of the connection, and of Redis behind it. Without one of them, the rows are old and their times stop. */
function showState(): void {
  const since = connected === 'live' ? model.outageSince : undefined;
  const isStale = since !== undefined || (connected !== 'live' && connected !== 'connecting');
  byId('connection').dataset['state'] = since === undefined ? connected : 'unavailable';
  document.body.classList.toggle('stale', isStale);
  stopTimes(isStale);
  const outage = since === undefined ? undefined : `Redis unavailable since ${timeOfDay(since)}`;
  setText(byId('state'), outage ?? `${STATES[connected]}${lostAt === undefined ? '' : ` ${lostAt}`}`);
}

function showConnection(connection: Connection): void {
  connected = connection.kind;
  lostAt = connected === 'lost' ? (lostAt ?? timeOfDay(Date.now())) : undefined;
  showState();
  const trouble = byId('trouble');
  trouble.hidden = connection.kind !== 'ended';
  if (connection.kind !== 'ended') return;
  setText(within(trouble, 'p'), visible(connection.message));
  within(trouble, 'button').hidden = false;
}

function badge(name: string, value: number, isTrouble = false): void {
  const node = within(document, `[data-badge=${name}]`);
  setText(node, value === 0 ? '' : count(value));
  node.classList.toggle('trouble', isTrouble && value > 0);
}

const OUTAGE =
  'Redis does not answer. The page shows what it read last, and goes on by itself when Redis answers again.';

/** Draws once for all events of a frame. */
function draw(): void {
  if (isDrawing) return;
  isDrawing = true;
  requestAnimationFrame(() => {
    isDrawing = false;
    render();
  });
}

function render(): void {
  const rowsNow = [...model.rows.values()].map(({ value }) => value);
  const semaphoreCount = rowsNow.filter(isSemaphore).length;
  badge('locks', rowsNow.length - semaphoreCount + Math.max(0, (model.summary?.matching ?? 0) - rowsNow.length));
  badge('semaphores', semaphoreCount);
  badge(
    'waits',
    model.waits.value.reduce((sum, edge) => sum + edge.count, 0),
  );
  badge('process', model.own?.value.holdCount ?? 0);
  badge('doctor', doctor.urgent(), true);
  const problems = byId('problems');
  const told = model.problems.filter(({ isOutage }) => !isOutage);
  const outage = model.outageSince === undefined ? [] : [OUTAGE];
  const texts = [...outage, ...told.map(({ what, message }) => `${what}: ${visible(message)}`)];
  problems.hidden = texts.length === 0;
  if (problems.textContent !== texts.join('')) {
    problems.replaceChildren(
      ...texts.map((text) => Object.assign(document.createElement('li'), { textContent: text })),
    );
  }
  ({
    locks: () => locks.render(),
    lock: () => {
      locks.render();
      lock.render();
    },
    semaphores: () => semaphores.render(),
    waits: () => contention.render(),
    process: () => ownProcess.render(),
    doctor: () => doctor.render(),
  })[route.view]();
}

function tick(): void {
  if (document.visibilityState === 'hidden') return;
  if (route.view === 'locks' || route.view === 'lock') locks.tick();
  if (route.view === 'lock') lock.tick();
  if (route.view === 'semaphores') semaphores.tick();
  if (route.view === 'waits') contention.tick();
  if (route.view === 'process') ownProcess.tick();
}

function showRoute(): void {
  document.body.dataset['view'] = route.view;
  for (const view of [...VIEWS, 'lock'] as const) {
    byId(`view-${view}`).hidden = view !== route.view && !(view === 'locks' && route.view === 'lock');
  }
  for (const link of document.querySelectorAll('nav a')) {
    const isHere = link.getAttribute('href') === `#${route.view === 'lock' ? 'locks' : route.view}`;
    if (isHere) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  lock.select(route.lock);
  document.title = `${route.lock === undefined ? 'Locks' : visible(route.lock.value)} · Holdfast`;
}

window.addEventListener('hashchange', () => {
  const before = route;
  route = routeOf(location.hash);
  showRoute();
  if (before.lock?.by !== route.lock?.by || before.lock?.value !== route.lock?.value) {
    model.deselect();
    openStream();
  }
  render();
  if (route.view === 'lock') lock.focus();
  else if (before.view === 'lock' && route.view === 'locks') locks.focus(before.lock?.value);
});

byId('view-lock').addEventListener('keydown', ({ key }) => {
  if (key === 'Escape' && !byId('unlock', HTMLDialogElement).open) location.hash = 'locks';
});

byId('skip').addEventListener('click', (event) => {
  // The fragment of the address names the view.
  event.preventDefault();
  byId('content').focus();
});

within(byId('trouble'), 'button').addEventListener('click', () => {
  showConnection({ kind: 'connecting' });
  stream.open();
});

let typing: ReturnType<typeof setTimeout> | undefined;
for (const id of ['search-locks', 'search-semaphores']) {
  const input = byId(id, HTMLInputElement);
  input.form?.addEventListener('submit', (event) => event.preventDefault());
  input.addEventListener('input', () => {
    for (const other of document.querySelectorAll<HTMLInputElement>('.search input')) other.value = input.value;
    clearTimeout(typing);
    typing = setTimeout(() => {
      search = input.value.trim();
      rows = ROWS;
      announceSearch = true;
      openStream();
    }, SEARCH_DELAY_MS);
  });
}

const isCalm = matchMedia('(prefers-reduced-motion: reduce)').matches;
setInterval(tick, isCalm ? CALM_TICK_MS : TICK_MS);
showRoute();
openStream();
