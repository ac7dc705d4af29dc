// @ts-check
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { scriptText } from './script-text.cjs';

const scripts = {
  name: 'lua',
  /** @param {string} id */
  load: (id) =>
    id.endsWith('.lua')
      ? { code: `export default ${JSON.stringify(scriptText(readFileSync(id, 'utf8')))};`, moduleType: 'js' }
      : null,
};

const common = {
  cwd: fileURLToPath(new URL('..', import.meta.url)),
  platform: 'node',
  target: 'node20',
  dts: true,
  plugins: [scripts],
  inputOptions: { checks: { pluginTimings: false } },
  // Editors take the doc comments from the types.
  outputOptions: { comments: { jsdoc: false, legal: false, annotation: true } },
};

/** What the CommonJS build carries, because it cannot require them. */
export const INLINED = ['p-retry', 'is-network-error', 'mitt'];

export default [
  {
    ...common,
    // The index only passes on what these export: a bundler that needs an error class alone leaves the rest out.
    entry: {
      index: 'src/index.ts',
      client: 'src/client/create-client.ts',
      errors: 'src/errors.ts',
      'lock-context': 'src/ownership/lock-context.ts',
    },
    format: 'esm',
    dts: false,
  },
  // The types in one file.
  { ...common, entry: ['src/index.ts'], format: 'esm', clean: false, dts: { emitDtsOnly: true } },
  {
    ...common,
    entry: ['src/index.ts'],
    format: 'cjs',
    clean: false,
    deps: { alwaysBundle: INLINED, onlyBundle: false },
  },
];
