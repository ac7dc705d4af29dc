import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findChromium } from './chromium.mjs';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-chromium-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

function program(name: string, text: string): string {
  writeFileSync(join(folder, name), `#!/bin/sh\n${text}\n`);
  chmodSync(join(folder, name), 0o755);
  return join(folder, name);
}

test('a browser on the PATH is found, and a program that does not run is passed over', () => {
  expect(findChromium({ PATH: folder })).toBeUndefined();
  program('chromium', 'echo "install the snap" >&2; exit 1');
  expect(findChromium({ PATH: folder })).toBeUndefined();
  const chrome = program('google-chrome', 'echo "Google Chrome 150.0.1.2"');
  expect(findChromium({ PATH: folder })).toBe(chrome);
});

test('HOLDFAST_CHROMIUM goes before the PATH, and names a browser that runs', () => {
  program('chromium', 'echo "Chromium 150.0.1.2"');
  const named = program('mine', 'echo "Chromium 151.0.1.2"');
  expect(findChromium({ PATH: folder, HOLDFAST_CHROMIUM: named })).toBe(named);
  expect(() => findChromium({ PATH: folder, HOLDFAST_CHROMIUM: join(folder, 'none') })).toThrow(
    'no browser that runs here',
  );
});
