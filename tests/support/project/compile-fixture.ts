import { transformFile } from '@swc/core';
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { PROJECT_ROOT } from './project-files.js';

const exec = promisify(execFile);

export type Compiler = 'tsc' | 'swc';

/** A compiled program, inside of the project so that it finds the packages and `holdfast` itself. */
export interface Compiled {
  readonly file: string;
  remove(): void;
}

/** Compiles a `.cts` file with the decorators and the metadata of Nest. tsc checks its types as well. */
export async function compileFixture(path: string, compiler: Compiler): Promise<Compiled> {
  mkdirSync(join(PROJECT_ROOT, '.tmp'), { recursive: true });
  const folder = mkdtempSync(join(PROJECT_ROOT, '.tmp', `${compiler}-`));
  const file = join(folder, basename(path).replace(/\.cts$/, '.cjs'));
  if (compiler === 'swc') {
    const { code } = await transformFile(path, {
      swcrc: false,
      jsc: {
        parser: { syntax: 'typescript', decorators: true },
        transform: { legacyDecorator: true, decoratorMetadata: true },
        target: 'es2022',
        keepClassNames: true,
      },
      module: { type: 'commonjs' },
    });
    writeFileSync(file, code);
  } else {
    const config = join(folder, 'tsconfig.json');
    writeFileSync(
      config,
      JSON.stringify({ compilerOptions: { ...TSC_OPTIONS, rootDir: dirname(path) }, files: [path] }),
    );
    const tsc = join(PROJECT_ROOT, 'node_modules/typescript/bin/tsc');
    await exec(process.execPath, [tsc, '-p', config, '--outDir', folder]).catch((error: unknown) => {
      throw new Error((error as { stdout: string }).stdout);
    });
  }
  return { file, remove: () => rmSync(folder, { recursive: true }) };
}

const TSC_OPTIONS = {
  module: 'nodenext',
  target: 'es2022',
  strict: true,
  skipLibCheck: true,
  experimentalDecorators: true,
  emitDecoratorMetadata: true,
  typeRoots: [join(PROJECT_ROOT, 'node_modules/@types')],
  types: ['node'],
};
