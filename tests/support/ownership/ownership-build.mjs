// @ts-check
import { transformAsync } from '@babel/core';
// @ts-expect-error -- it has no declarations
import presetEnv from '@babel/preset-env';
import { build } from 'esbuild';
import { mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const here = (/** @type {string} */ path) => fileURLToPath(new URL(path, import.meta.url));

const SCENARIOS = here('../../unit/ownership/scenarios/');
/** Inside node_modules, so that the built files find the packages they import and tools ignore them. */
const CACHE = here('../../../node_modules/.cache/holdfast/');

/**
 * The targets to which user code may be compiled. The library is used as it is built.
 * @type {Record<string, (source: string) => string | Promise<string>>}
 */
export const compileTargets = {
  // eslint-disable-next-line @typescript-eslint/no-deprecated -- as long as TypeScript can, its users may
  'TypeScript to ES5': (source) => compiled(source, ts.ScriptTarget.ES5),
  'TypeScript to ES2015': (source) => compiled(source, ts.ScriptTarget.ES2015),
  'TypeScript to ES2017': (source) => compiled(source, ts.ScriptTarget.ES2017),
  'TypeScript to ES2022': (source) => compiled(source, ts.ScriptTarget.ES2022),
  'Babel for IE 11': async (source) => {
    const result = await transformAsync(compiled(source, ts.ScriptTarget.ESNext), {
      babelrc: false,
      configFile: false,
      presets: [
        [/** @type {import('@babel/core').PluginTarget} */ (presetEnv), { targets: { ie: '11' }, modules: false }],
      ],
    });
    return result?.code ?? '';
  },
};

/**
 * @param {string} source
 * @param {ts.ScriptTarget} target
 */
function compiled(source, target) {
  const { outputText, diagnostics } = ts.transpileModule(source, {
    reportDiagnostics: true,
    // Without downlevelIteration, ES5 code can iterate over arrays only.
    // eslint-disable-next-line @typescript-eslint/no-deprecated -- goes with ES5
    compilerOptions: { target, module: ts.ModuleKind.ESNext, downlevelIteration: true, ignoreDeprecations: '6.0' },
  });
  for (const { messageText } of diagnostics ?? []) throw new Error(ts.flattenDiagnosticMessageText(messageText, '\n'));
  return outputText;
}

/**
 * Builds the library and the scenarios, compiled as one of the targets, for ownership-runner.mjs.
 * @param {string} name
 * @param {string} target
 * @returns the folder
 */
export async function buildOwnership(name, target = 'TypeScript to ES2022') {
  const compile = compileTargets[target];
  if (compile === undefined) throw new Error(`no such target: ${target}`);
  const folder = join(CACHE, name);
  await mkdir(join(folder, 'scenarios'), { recursive: true });
  await writeFile(join(folder, 'package.json'), '{ "type": "module" }');
  const library = {
    entryPoints: [here('ownership-library.ts')],
    bundle: true,
    platform: /** @type {const} */ ('node'),
  };
  await build({ ...library, target: 'node20', format: 'esm', outfile: join(folder, 'library.mjs') });
  await build({ ...library, target: 'node20', format: 'cjs', outfile: join(folder, 'library.cjs') });
  for (const file of await readdir(SCENARIOS)) {
    const code = await compile(await readFile(join(SCENARIOS, file), 'utf8'));
    await writeFile(join(folder, 'scenarios', `${basename(file, '.ts')}.js`), code);
  }
  return folder;
}

/** @param {string} folder as buildOwnership returned it */
export async function removeBuilt(folder) {
  await rm(folder, { recursive: true, force: true });
}
