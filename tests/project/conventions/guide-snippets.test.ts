import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { build } from 'esbuild';
import { execFile, fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import ts from 'typescript';
import { PROJECT_ROOT } from '../../support/project/project-files.js';
import { guide, promisedOutput, snippets, typeErrors, type Snippet } from '../../support/project/guide.js';
import { leavesKeys, testRedisUrl } from '../../support/redis.js';

const exec = promisify(execFile);
const ESM = join(PROJECT_ROOT, 'dist/index.mjs');
const CJS = join(PROJECT_ROOT, 'dist/index.cjs');

/** Precedes each snippet that creates no client. */
const BEFORE = `import { createClient } from 'holdfast';
const client = createClient({ url: 'redis://127.0.0.1:6379' });
const lock = client.getLock('order:42');
const fetchReport = async (options: { signal: AbortSignal }) => (options.signal.aborted ? 'stopped' : 'done');
`;
const AFTER = `await client.close();\n`;

/** The program keeps the line numbers of its page, so that messages of the compiler lead there. */
function program({ code, line }: Snippet): string {
  if (/\bcreateClient\(/.test(code)) return '\n'.repeat(line - 1) + code;
  return BEFORE + '\n'.repeat(line - BEFORE.split('\n').length) + code + AFTER;
}

const typescript = snippets('ts');
const javascript = snippets('js');
const place = ({ page, line }: Snippet): string => `${page}:${line}`;
/** A file name for the program of a snippet. */
const fileOf = (snippet: Snippet): string => place(snippet).replace(/\W/g, '-');

// In node_modules, where the written files find the packages that they import and tools ignore them.
let folder: string;
beforeAll(() => {
  const cache = join(PROJECT_ROOT, 'node_modules/.cache/holdfast');
  mkdirSync(cache, { recursive: true });
  folder = mkdtempSync(join(cache, 'guide-'));
});
afterAll(() => rmSync(folder, { recursive: true }));
leavesKeys('semaphores, latches and locks with a lease outlive their snippets');

function written(name: string, code: string): string {
  const path = join(folder, name);
  writeFileSync(path, code.replaceAll('redis://127.0.0.1:6379', testRedisUrl()));
  return path;
}

let runner: ChildProcess;
let complaints = '';
beforeAll(() => {
  runner = fork(join(PROJECT_ROOT, 'tests/support/project/snippet-runner.mjs'), {
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  runner.stderr!.on('data', (text) => (complaints += String(text)));
});
afterAll(() => void runner.kill());

/** The lines that a module prints: at least so many of them. */
async function printed(path: string, count: number): Promise<string[]> {
  // A snippet may have ended the process.
  expect(runner.connected).toBe(true);
  const replied = once(runner, 'message');
  runner.send({ path, count });
  const [{ lines, error }] = (await replied) as [{ lines: string[]; error?: string }];
  expect(error).toBe(undefined);
  return lines;
}

const asModule = (snippet: Snippet): string =>
  ts.transpileModule(program(snippet), {
    compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext, verbatimModuleSyntax: true },
  }).outputText;

/** In place of the package that a user would install. */
const withBuild = (code: string): string =>
  code.replaceAll(/from 'holdfast(?:\/([\w-]+))?'/g, (_, subpath: string | undefined) => {
    return `from '${pathToFileURL(join(PROJECT_ROOT, `dist/${subpath ?? 'index'}.mjs`)).href}'`;
  });

describe('snippets', () => {
  test('all are TypeScript, JavaScript, shell or text', () => {
    expect(typescript.length).toBeGreaterThan(5);
    expect(javascript.length).toBeGreaterThan(0);
    const known = [...typescript, ...javascript, ...snippets('sh', 'text')].length;
    expect((guide.match(/^```/gm) ?? []).length).toBe(2 * known);
  });

  test('type-check under the settings of this project', () => {
    expect(typeErrors(new Map(typescript.map((each) => [`${fileOf(each)}.ts`, program(each)])))).toEqual([]);
  });

  const runnable = [...typescript, ...javascript].filter(({ notRun }) => notRun === undefined);
  test.each(runnable.map((each) => [place(each), each] as const))(
    '%s runs and prints what its comments say',
    async (_place, snippet) => {
      const promised = [...new Set(promisedOutput(snippet.code))].sort();
      expect(promised).not.toEqual([]);
      const path =
        snippet.language === 'js'
          ? written(`${fileOf(snippet)}.cjs`, snippet.code.replace("'holdfast'", JSON.stringify(CJS)))
          : written(`${fileOf(snippet)}.mjs`, withBuild(asModule(snippet)));
      expect([...new Set(await printed(path, promised.length))].sort()).toEqual(promised);
    },
  );

  test('the process of the snippets ends on its own: no snippet leaves a client open or writes to stderr', async () => {
    const ended = once(runner, 'exit');
    runner.disconnect();
    expect(await ended).toEqual([0, null]);
    expect(complaints).toBe('');
  });
});

test('a bundle in ESM format runs with the banner, and fails without it', async () => {
  const [snippet] = typescript;
  const entry = written('bundled.mjs', asModule(snippet!));
  const banner = /--banner:js="([^"]+)"/.exec(guide)![1]!;
  const bundled = async (name: string, js: string): Promise<string> => {
    const outfile = join(folder, name);
    const alias = { holdfast: ESM };
    await build({
      entryPoints: [entry],
      alias,
      bundle: true,
      platform: 'node',
      format: 'esm',
      outfile,
      banner: { js },
    });
    return outfile;
  };
  const { stdout } = await exec(process.execPath, [await bundled('with.mjs', banner)]);
  expect(stdout.trimEnd().split('\n')).toEqual(promisedOutput(snippet!.code));
  await expect(exec(process.execPath, [await bundled('without.mjs', '')])).rejects.toThrow('Dynamic require');
});
