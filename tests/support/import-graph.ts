import { posix } from 'node:path';

export interface ImportLine {
  readonly specifier: string;
  /** Erased by the compiler: it needs nothing at run time. `import { type X }` is not, it leaves an import behind. */
  readonly typeOnly: boolean;
}

/** Source files by their path from the project's root. */
export type Sources = ReadonlyMap<string, string>;

/** Code without comments; what strings say stays, since specifiers are strings. */
export function withoutComments(text: string): string {
  return text.replace(/("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`)|\/\*[\s\S]*?\*\/|\/\/.*/g, '$1');
}

export function readImports(text: string): ImportLine[] {
  const code = withoutComments(text);
  const lines: ImportLine[] = [];
  for (const [, kind, specifier] of code.matchAll(
    /^(?:import|export)\b(\s+type\b(?!\s+from))?[^;'"]*?from\s+['"]([^'"]+)['"]/gm,
  )) {
    lines.push({ specifier: specifier!, typeOnly: kind !== undefined });
  }
  for (const [, specifier] of code.matchAll(/^import\s+['"]([^'"]+)['"]/gm)) {
    lines.push({ specifier: specifier!, typeOnly: false });
  }
  for (const [, specifier] of code.matchAll(/\b(?:import|require)\s*\(\s*['"]([^'"]+)['"]/g)) {
    lines.push({ specifier: specifier!, typeOnly: false });
  }
  return lines;
}

/** Folders of src from the top down: what stands in one may import what stands below it. */
const LAYERS = ['', 'primitives', 'core', 'redis'];

/** Files directly in src that are no part of a layer: anyone may import them, and they import only each other. */
const LEAVES = new Set(['options', 'errors', 'events', 'clock', 'lua.d'].map((name) => `src/${name}.ts`));

/** A primitive says what is sent under which name; who sends it, and over which connection, is not its business. */
const OPEN_TO_PRIMITIVES = /^src\/redis\/(scripts\/.*|keys\.ts)$/;

function layerOf(path: string): number {
  const layer = LAYERS.indexOf(path.split('/').slice(1, -1)[0] ?? '');
  if (layer < 0) throw new Error(`${path} stands in no known layer of src`);
  return layer;
}

function resolveOwn(from: string, specifier: string): string {
  return posix.join(posix.dirname(from), specifier).replace(/\.js$/, '.ts');
}

/** One line for each import that the architecture does not allow. */
export function forbiddenImports(sources: Sources): string[] {
  const found: string[] = [];
  for (const [path, text] of sources) {
    for (const { specifier, typeOnly } of readImports(text)) {
      const complain = (why: string) => found.push(`${path} imports ${specifier}: ${why}`);
      if (!specifier.startsWith('.')) {
        if (specifier === 'ioredis' && !path.startsWith('src/redis/')) {
          if (!typeOnly) complain('only src/redis imports ioredis');
          else if (layerOf(path) > 0) complain('outside src/redis only the client and its options name its types');
        }
        continue;
      }
      const target = resolveOwn(path, specifier);
      if (target.endsWith('.lua')) {
        if (!path.startsWith('src/redis/scripts/')) complain('scripts are bound in src/redis/scripts');
        continue;
      }
      if (!sources.has(target)) complain('there is no such file');
      else if (LEAVES.has(target)) continue;
      else if (LEAVES.has(path)) complain('a leaf imports only leaves');
      else if (layerOf(target) < layerOf(path)) complain('imports point down');
      else if (target === 'src/index.ts') complain('index.ts is the way in for users');
      else if (layerOf(path) === 1 && layerOf(target) === 3 && !typeOnly && !OPEN_TO_PRIMITIVES.test(target)) {
        complain('a primitive reaches Redis through core; only the bindings and the names of keys are open to it');
      }
    }
  }
  return found;
}

/**
 * Each circle of imports once, as `a -> b -> a`. Type imports are left out: they are gone at run time, and a hold and
 * its tenure may know each other's shape. (That they point down is checked for them like for all others.)
 */
export function importCycles(sources: Sources): string[] {
  const cycles = new Set<string>();
  const done = new Set<string>();
  const visit = (path: string, trail: readonly string[]): void => {
    const start = trail.indexOf(path);
    if (start >= 0) {
      const circle = trail.slice(start);
      const first = circle.indexOf([...circle].sort()[0]!);
      cycles.add([...circle.slice(first), ...circle.slice(0, first), circle[first]].join(' -> '));
      return;
    }
    if (done.has(path)) return;
    for (const { specifier, typeOnly } of readImports(sources.get(path) ?? '')) {
      if (specifier.startsWith('.') && !typeOnly) visit(resolveOwn(path, specifier), [...trail, path]);
    }
    done.add(path);
  };
  for (const path of sources.keys()) visit(path, []);
  return [...cycles].sort();
}
