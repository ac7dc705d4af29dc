// @ts-check
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { pageText, TEXT } from './page-text.cjs';
import { SUBPATHS } from './subpaths.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
/**
 * Not an import: tsdown bundles what this file imports, and `__dirname` in the bundle is the folder of this file.
 *
 * @type {typeof import('./lua/script-text.cjs')}
 */
const { scriptModule } = createRequire(import.meta.url)('./lua/script-text.cjs');

const scripts = {
  name: 'lua',
  /** @param {string} id */
  load: (id) => (id.endsWith('.lua') ? { code: scriptModule(readFileSync(id, 'utf8')), moduleType: 'js' } : null),
};

/** Files that are imported as text: `./page/inspector.css?text`. */
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

/**
 * A subpath imports its peers through files that say which package to install. These files are CommonJS, also for the ESM
 * build: Node.js reports a missing package of a static import before any code runs.
 *
 * @param {string} subpath @param {Readonly<Record<string, readonly string[]>>} imports
 */
const throughPeerFiles = (subpath, imports) => ({
  name: 'peer-files',
  resolveId: {
    order: 'pre',
    /** @param {string} id @param {string | undefined} importer */
    handler: (id, importer) => {
      if (id.startsWith('./peers/')) return { id, external: true };
      // The types import the package itself.
      return id in imports && !/\.d\.[cm]?ts$/.test(importer ?? '') ? `\0peer:${id}` : null;
    },
  },
  /** @param {string} id */
  load: (id) => {
    if (!id.startsWith('\0peer:')) return null;
    const peer = id.slice('\0peer:'.length);
    const names = (imports[peer] ?? []).join(', ');
    return {
      code: `import { load } from '${peerFile(subpath, peer)}';\nexport const { ${names} } = load();`,
      moduleType: 'js',
    };
  },
});

/** @param {string} subpath @param {string} peer */
const peerFile = (subpath, peer) => `./peers/${subpath}-${peer.replace('@', '').replace('/', '-')}.cjs`;

/**
 * Nest itself may be the first to need `rxjs`, so the file names whichever peer is missing.
 *
 * @param {string} subpath @param {string} peer @param {readonly string[]} peers
 */
const peerFileText = (subpath, peer, peers) => `'use strict';
// A function: Node.js 20 reports an error of a CommonJS module that is imported as uncaught, also if the importer catches it.
exports.load = () => {
  try {
    return require('${peer}');
  } catch (cause) {
    const [, missing] = /^Cannot find module '((?:@[^/']+\\/)?[^/']+)/.exec(cause.message) ?? [];
    if (cause.code !== 'MODULE_NOT_FOUND' || !${JSON.stringify(peers)}.includes(missing)) throw cause;
    const error = new Error(\`holdfast/${subpath} needs the package \${missing}: npm install \${missing}\`, { cause });
    throw Object.assign(error, { code: 'MODULE_NOT_FOUND' });
  }
};
`;

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
  {
    ...common,
    entry: { cli: 'src/cli/main.ts' },
    format: 'esm',
    clean: false,
    dts: false,
    plugins: [texts, ownPackage],
  },
  ...Object.entries(SUBPATHS).flatMap(([name, { inlined = [], imports = {} }]) => {
    const plugins = [texts, ownPackage, throughPeerFiles(name, imports)];
    const subpath = {
      ...common,
      entry: { [name]: `src/integrations/${name}/index.ts` },
      clean: false,
      deps: { alwaysBundle: [...inlined], onlyBundle: [...inlined] },
    };
    return [
      { ...subpath, format: 'esm', plugins, onSuccess: () => complete(name, Object.keys(imports)) },
      { ...subpath, format: 'cjs', plugins, dts: false },
    ];
  }),
];

/**
 * The types of a subpath are the same text for both formats: they import the root by the name of the package. For CJS,
 * tsdown would inline the types of the root, and its classes would not be those of the root.
 *
 * @param {string} name @param {readonly string[]} peers
 */
function complete(name, peers) {
  if (peers.length > 0) mkdirSync(join(root, 'dist/peers'), { recursive: true });
  for (const peer of peers) writeFileSync(join(root, 'dist', peerFile(name, peer)), peerFileText(name, peer, peers));
  const types = join(root, 'dist', `${name}.d.mts`);
  // `--no-dts` makes no types.
  if (existsSync(types)) copyFileSync(types, join(root, 'dist', `${name}.d.cts`));
}
