import { expect, test } from '@jest/globals';
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

test('the code above the bindings reads the words of a reply and not its type', () => {
  const types = /\btypeof (?:\w+[.?]*)*repl(?:y|ies)\b/;
  expect(types.test("typeof request.reply === 'number'")).toBe(true);
  expect(linesOfSource(types, (path) => path.startsWith('src/redis/scripts/'))).toEqual([]);
});
