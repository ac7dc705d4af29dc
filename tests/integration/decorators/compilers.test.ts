import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { promisify } from 'node:util';
import * as babel from '@babel/core';
import * as swc from '@swc/core';
import * as esbuild from 'esbuild';
import ts from 'typescript';
import { PROJECT_ROOT, readProjectFile } from '../../support/project/project-files.js';
import { freshName, testRedisUrl } from '../../support/redis.js';

/* `@Locked` is one export for both forms of decorators. The built package runs in each compiler's output. */

const exec = promisify(execFile);
const require = createRequire(import.meta.url);
const FIXTURES = 'tests/integration/decorators/fixtures';
const source = readProjectFile(`${FIXTURES}/orders.ts`);

// Inside the project, where the compiled class finds the built package by its name.
let folder: string;
beforeAll(() => {
  mkdirSync(join(PROJECT_ROOT, '.tmp'), { recursive: true });
  folder = mkdtempSync(join(PROJECT_ROOT, '.tmp/decorators-'));
  cpSync(join(PROJECT_ROOT, FIXTURES, 'run-orders.mjs'), join(folder, 'run-orders.mjs'));
});
afterAll(() => rmSync(folder, { recursive: true }));

const tsc = (experimentalDecorators: boolean) => async (): Promise<string> =>
  ts.transpileModule(source, {
    compilerOptions: {
      target: ts.ScriptTarget.ES2022,
      module: ts.ModuleKind.ESNext,
      experimentalDecorators,
      emitDecoratorMetadata: experimentalDecorators,
    },
  }).outputText;

const withEsbuild = (experimentalDecorators: boolean) => async (): Promise<string> =>
  (
    await esbuild.transform(source, {
      loader: 'ts',
      target: 'node20',
      tsconfigRaw: { compilerOptions: { experimentalDecorators } },
    })
  ).code;

const withBabel = (options: object) => async (): Promise<string> => {
  const built = await babel.transformAsync(source, {
    filename: 'orders.ts',
    configFile: false,
    presets: [require.resolve('@babel/preset-typescript')],
    plugins: [[require.resolve('@babel/plugin-proposal-decorators'), options]],
  });
  return built!.code!;
};

const withSwc =
  (transform: swc.TransformConfig): (() => Promise<string>) =>
  async () => {
    const parser = { syntax: 'typescript', decorators: true } as const;
    return (await swc.transform(source, { jsc: { parser, target: 'es2022', transform }, module: { type: 'es6' } }))
      .code;
  };

describe.each<[string, () => Promise<string>]>([
  ['tsc, standard', tsc(false)],
  ['tsc, legacy', tsc(true)],
  ['esbuild, standard', withEsbuild(false)],
  ['esbuild, legacy', withEsbuild(true)],
  ['Babel, standard', withBabel({ version: '2023-11' })],
  ['Babel, legacy', withBabel({ version: 'legacy' })],
  ['swc, standard', withSwc({ decoratorVersion: '2022-03' })],
  ['swc, legacy', withSwc({ legacyDecorator: true, decoratorMetadata: true })],
])('a class with @Locked, compiled by %s', (name, compile) => {
  test('locks its methods, and keeps their names, lengths, properties and metadata', async () => {
    const path = join(folder, `${name.replace(/\W+/g, '-')}.mjs`);
    writeFileSync(path, await compile());
    const prefix = freshName();
    const { stdout, stderr } = await exec(process.execPath, ['run-orders.mjs', path, testRedisUrl(), prefix], {
      cwd: folder,
      timeout: 60_000,
    });
    expect({ ...(JSON.parse(stdout) as object), stderr }).toEqual({
      outer: [':outer 2', ':outer 1'],
      shipped: ['42'],
      busy: ['report is busy: 0', 'report ran'],
      sameError: true,
      static: 1,
      left: [],
      names: ['outer', 2, 'nested', 2],
      metadata: ['/inner-last', '/inner-first'],
      properties: ['/inner-last', '/inner-first'],
      stderr: '',
    });
  }, 120_000);
});

describe.each([false, true])('with experimentalDecorators: %s', (experimentalDecorators) => {
  test('the types refuse what cannot be locked, and nothing else', () => {
    const { options } = ts.convertCompilerOptionsFromJson(
      {
        ...{ target: 'es2022', module: 'nodenext', strict: true, exactOptionalPropertyTypes: true, noEmit: true },
        ...{ experimentalDecorators, types: ['node'], skipLibCheck: true },
      },
      PROJECT_ROOT,
    );
    const files = ['types.ts', 'orders.ts'].map((file) => join(PROJECT_ROOT, FIXTURES, file));
    const messages = ts.getPreEmitDiagnostics(ts.createProgram(files, options)).map(({ file, start, messageText }) => {
      const { line } = file!.getLineAndCharacterOfPosition(start!);
      return `${file!.fileName}:${line + 1} ${ts.flattenDiagnosticMessageText(messageText, '\n')}`;
    });
    expect(messages).toEqual([]);
  }, 120_000);
});
