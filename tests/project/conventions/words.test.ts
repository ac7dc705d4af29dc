import { expect, test } from '@jest/globals';
import ts from 'typescript';
import { LeaseClock, systemClock, type LeaseClockMs, type MonotonicMs } from '../../../src/clock.js';
import { projectFiles, readProjectFile } from '../../support/project/project-files.js';

/** The lines of the files in `src` that match, with the file and the number of the line. */
function linesOfSource(pattern: RegExp, isExempt: (path: string) => boolean = () => false): string[] {
  return projectFiles('src', '.ts')
    .filter((path) => !isExempt(path))
    .flatMap((path) =>
      readProjectFile(path)
        .split('\n')
        .flatMap((line, at) => (pattern.test(line) ? [`${path}:${at + 1}: ${line.trim()}`] : [])),
    );
}

test('only the clock adds its jumps to a time', () => {
  const sums = /(?:\bjumped|Jump)\b *[-+] |[-+] [\w.#]*(?:\bjumped|Jump)\b/;
  expect(['sentAt + jumped', 'now - this.clock.jumped)', 'jumped + 1'].every((text) => sums.test(text))).toBe(true);
  expect(linesOfSource(sums, (path) => path === 'src/clock.ts')).toEqual([]);
});

test('moments of the two clocks do not fit each other', () => {
  const monotonic: MonotonicMs = 1;
  // @ts-expect-error a moment of the monotonic clock is none of the lease clock
  const lease: LeaseClockMs = monotonic;
  // @ts-expect-error a moment of the lease clock is none of the monotonic clock
  const back: MonotonicMs = new LeaseClock(systemClock((fn) => fn())).now();
  expect([lease, back > 0]).toEqual([1, true]);
});

test('the code above the bindings reads the words of a reply and not its type', () => {
  const types = /\btypeof (?:\w+[.?]*)*repl(?:y|ies)\b/;
  expect(types.test("typeof request.reply === 'number'")).toBe(true);
  expect(linesOfSource(types, (path) => path.startsWith('src/redis/scripts/'))).toEqual([]);
});

/** Limits of a type or of a rounding, and durations of subpaths and of the inspector's page, which import only the root. */
const NO_CHOICES =
  /^src\/(?:clock\.ts:\d+: const MAX_TIMER_MS|options\.ts:\d+: const MAX_MS|lease-time\.ts:\d+: const (?:MAX|ROUNDING)_MS|locks\/arguments\.ts:\d+: const MAX_MS|integrations\/)/;

test('every duration that the client chooses is in timing.ts, with its reason', () => {
  const durations = /^(?:export )?const (?:[A-Z]+_)*(?:MS|PAUSES)\b.*=/;
  const choices = linesOfSource(durations).filter((line) => !NO_CHOICES.test(line));
  const [inTiming, elsewhere] = [true, false].map((is) =>
    choices.filter((line) => line.startsWith('src/timing.ts:') === is),
  );
  expect(inTiming!.length).toBeGreaterThan(30);
  expect(elsewhere).toEqual([]);
  const unexplained = /^(?!export const|.*\*\/$).*\nexport const (\w+)/m.exec(readProjectFile('src/timing.ts'));
  expect(unexplained?.[1]).toBeUndefined();
});

type Field = ts.PropertyDeclaration | ts.ParameterDeclaration;

/** Whether a field can change and holds a boolean, by its type or its first value. */
const isFlag = ({ type, initializer, modifiers }: Field): boolean =>
  modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ReadonlyKeyword) !== true &&
  [ts.SyntaxKind.BooleanKeyword, ts.SyntaxKind.TrueKeyword, ts.SyntaxKind.FalseKeyword].some(
    (kind) => type?.kind === kind || initializer?.kind === kind,
  );

/** The flags of each class, private fields and parameter properties included. */
function flagsOf(path: string, text: string): { readonly name: string; readonly flags: string[] }[] {
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const found: { name: string; flags: string[] }[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isClassLike(node)) {
      const fields = node.members.flatMap((member): readonly Field[] => {
        if (ts.isPropertyDeclaration(member)) return [member];
        if (!ts.isConstructorDeclaration(member)) return [];
        return member.parameters.filter((parameter) => ts.isParameterPropertyDeclaration(parameter, member));
      });
      const flags = fields.filter(isFlag).map((field) => field.name.getText(file));
      found.push({ name: `${path} ${node.name?.text ?? ''}`, flags });
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

/** Classes with more flags, and why these are no states of one kind. */
const MORE_FLAGS: Readonly<Record<string, string>> = {
  'src/redis/connections/command-connection.ts CommandConnection':
    'each flag is about another thing: the clock of the server, its replies, the load, and the end of the connection',
  'src/redis/topologies/cluster-topology.ts ClusterTopology':
    'a look at the slots may be pending and another one due, in every combination',
};

test('a class has at most two boolean fields that change: its state is a union', () => {
  const text =
    'class X { a = false; readonly #b: boolean; #c?: boolean; constructor(private d: boolean, e: boolean) {} }';
  expect(flagsOf('x.ts', text)).toEqual([{ name: 'x.ts X', flags: ['a', '#c', 'd'] }]);
  const classes = projectFiles('src', '.ts').flatMap((path) => flagsOf(path, readProjectFile(path)));
  expect(classes.length).toBeGreaterThan(50);
  const over = classes.filter(({ flags }) => flags.length > 2);
  expect(over.map(({ name }) => name)).toEqual(Object.keys(MORE_FLAGS));
});
