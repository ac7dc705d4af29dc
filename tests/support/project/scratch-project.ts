import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { PROJECT_ROOT } from './project-files.js';

/* The package as users get it: packed, and installed into separate projects in a temporary folder. */

interface Manifest {
  dependencies?: Record<string, string>;
}

const exec = promisify(execFile);
const npm = (args: string[], cwd: string) => exec('npm', args, { cwd, shell: process.platform === 'win32' });
const read = (path: string) => JSON.parse(readFileSync(path, 'utf8')) as Manifest;

/** The folders of packages and of all that they need, as they are installed here, so that npm fetches nearly nothing. */
function closure(names: string[], from: string, found = new Map<string, string>()): Map<string, string> {
  for (const name of names) {
    const folders = createRequire(join(from, 'package.json')).resolve.paths(name) ?? [];
    const folder = folders.map((path) => join(path, name)).find((path) => existsSync(join(path, 'package.json')));
    if (!folder) throw new Error(`${name} is not installed`);
    if (found.has(name)) continue;
    found.set(name, folder);
    closure(Object.keys(read(join(folder, 'package.json')).dependencies ?? {}), folder, found);
  }
  return found;
}

export interface Packed {
  /** A temporary folder for the tarball and the projects. */
  readonly scratch: string;
  readonly tarball: string;
  /** Paths of the packed files, from the root of the package. */
  readonly files: readonly string[];
  /** Size of the tarball. */
  readonly bytes: number;
  /** Creates a project with these packages besides holdfast and its dependencies, and returns its folder. */
  project(name: string, packages: readonly string[]): Promise<string>;
  remove(): void;
}

/** Packs the built package. */
export async function packPackage(): Promise<Packed> {
  const scratch = realpathSync(mkdtempSync(join(tmpdir(), 'holdfast-pack-')));
  const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', scratch];
  const [report] = JSON.parse((await npm(args, PROJECT_ROOT)).stdout) as [
    { filename: string; size: number; files: { path: string }[] },
  ];
  const tarball = join(scratch, report.filename);
  return {
    scratch,
    tarball,
    files: report.files.map(({ path }) => path),
    bytes: report.size,
    project: (name, packages) => install(join(scratch, name), tarball, packages),
    remove: () => rmSync(scratch, { recursive: true }),
  };
}

async function install(folder: string, tarball: string, packages: readonly string[]): Promise<string> {
  mkdirSync(folder);
  const own = Object.keys(read(join(PROJECT_ROOT, 'package.json')).dependencies ?? {});
  const installed = closure([...own, 'ioredis', '@types/node', ...packages], PROJECT_ROOT);
  const specifiers = [...installed].map(([name, path]): [string, string] => [name, `file:${path}`]);
  writeFileSync(
    join(folder, 'package.json'),
    JSON.stringify({
      name: 'consumer',
      private: true,
      dependencies: { ...Object.fromEntries(specifiers), holdfast: `file:${tarball}` },
    }),
  );
  const quiet = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-package-lock'];
  // A package that is installed in two versions may make npm ask the registry for the second one.
  await npm(['install', '--prefer-offline', '--install-links', ...quiet], folder);
  return folder;
}

/** Copies files of a folder of this project into a scratch project. */
export function copyInto(project: string, from: string): void {
  cpSync(join(PROJECT_ROOT, from), project, { recursive: true });
}
