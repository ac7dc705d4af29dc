// @ts-check
import { copyFileSync, existsSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { pageText, TEXT } from './page-text.cjs';
import { scriptText } from './script-text.cjs';
import { SUBPATHS } from './subpaths.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));

const scripts = {
  name: 'lua',
  /** @param {string} id */
  load: (id) =>
    id.endsWith('.lua')
      ? { code: `export default ${JSON.stringify(scriptText(readFileSync(id, 'utf8')))};`, moduleType: 'js' }
      : null,
};

/** The files of a page: `./page/inspector.css?text`. */
const texts = {
  name: 'text',
  /** @param {string} id @param {string | undefined} importer */
  resolveId: (id, importer) => (TEXT.test(id) && importer !== undefined ? resolve(dirname(importer), id) : null),
  /** @param {string} id */
  load: (id) =>
    TEXT.test(id)
      ? { code: `export default ${JSON.stringify(pageText(id.replace(TEXT, '')))};`, moduleType: 'js' }
      : null,
};

/** What a subpath imports of the root or of another subpath stays an import: a class must exist once for `instanceof`. */
const ownPackage = {
  name: 'own-package',
  /** @param {string} id @param {string | undefined} importer */
  resolveId: (id, importer) => {
    if (importer === undefined || !id.startsWith('.')) return null;
    const path = relative(join(root, 'src'), resolve(dirname(importer), id))
      .replace(/\.[jt]s$/, '')
      .replaceAll('\\', '/');
    if (path === 'index') return { id: 'holdfast', external: true };
    const subpath = /^integrations\/([^/]+)\/index$/.exec(path)?.[1];
    return subpath === undefined ? null : { id: `holdfast/${subpath}`, external: true };
  },
};

const common = {
  cwd: root,
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
  { ...common, entry: { cli: 'src/cli/main.ts' }, format: 'esm', clean: false, dts: false, plugins: [ownPackage] },
  ...Object.entries(SUBPATHS).flatMap(([name, { inlined = [] }]) => {
    const subpath = {
      ...common,
      entry: { [name]: `src/integrations/${name}/index.ts` },
      clean: false,
      deps: { alwaysBundle: [...inlined], onlyBundle: [...inlined] },
    };
    return [
      { ...subpath, format: 'esm', plugins: [texts, ownPackage], onSuccess: () => copyTypes(name) },
      { ...subpath, format: 'cjs', plugins: [texts, ownPackage], dts: false },
    ];
  }),
];

/**
 * The types of a subpath are the same text for both formats: they import the root by the name of the package. For CJS,
 * tsdown would inline the types of the root, and its classes would not be those of the root.
 *
 * @param {string} name
 */
function copyTypes(name) {
  const types = join(root, 'dist', `${name}.d.mts`);
  // `--no-dts` makes no types.
  if (existsSync(types)) copyFileSync(types, join(root, 'dist', `${name}.d.cts`));
}
