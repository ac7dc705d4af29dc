import type { Row, ServerEvents } from '../messages.js';

const status = document.querySelector('#status') as HTMLElement;
const table = document.querySelector('#rows') as HTMLElement;
const rows = new Map<string, Row>();

function draw(): void {
  table.replaceChildren(
    ...[...rows.values()].map(({ name, kind, waiters }) => {
      const line = document.createElement('tr');
      for (const text of [name, kind, String(waiters ?? '?')]) {
        const cell = document.createElement('td');
        cell.textContent = text;
        line.append(cell);
      }
      return line;
    }),
  );
}

const events = new EventSource('events');
function on<Name extends keyof ServerEvents>(name: Name, listener: (payload: ServerEvents[Name]) => void): void {
  events.addEventListener(name, ({ data }: MessageEvent<string>) => listener(JSON.parse(data) as ServerEvents[Name]));
}

on('hello', ({ client }) => {
  status.textContent = `Connected to ${client.name} ${client.host}:${client.pid}`;
  rows.clear();
  draw();
});
on('rows', ({ changed, removed }) => {
  for (const row of changed) rows.set(row.name, row);
  for (const name of removed) rows.delete(name);
  draw();
});
on('bye', () => {
  events.close();
  status.textContent = 'Disconnected';
});
events.addEventListener('error', () => (status.textContent = 'Disconnected'));
