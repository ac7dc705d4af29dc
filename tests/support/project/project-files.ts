import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder of the package's package.json, with no separator at its end. */
export const PROJECT_ROOT = fileURLToPath(new URL('../../..', import.meta.url)).replace(/[\\/]$/, '');

/** Paths from the project's root, with forward slashes, of all files in a folder; none if the folder is not there. */
export function projectFiles(folder: string, ending = ''): string[] {
  try {
    return readdirSync(join(PROJECT_ROOT, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && entry.name.endsWith(ending))
      .map((entry) =>
        join(entry.parentPath, entry.name)
          .slice(PROJECT_ROOT.length + 1)
          .replaceAll('\\', '/'),
      )
      .filter((path) => !posix.dirname(path).split('/').includes('node_modules'))
      .sort();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

export function readProjectFile(path: string): string {
  return readFileSync(join(PROJECT_ROOT, path), 'utf8');
}
