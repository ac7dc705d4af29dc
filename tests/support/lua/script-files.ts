import { withIncludes } from '../../../.ci/lua/script-text.cjs';
import { projectFiles, readProjectFile } from '../project/project-files.js';

const LUA_FILES = projectFiles('lua', '.lua');
/** Paths of the scripts, without the files that they include. */
export const SCRIPT_FILES = LUA_FILES.filter((path) => !path.startsWith('lua/lib/'));
export const INCLUDED_FILES = LUA_FILES.filter((path) => path.startsWith('lua/lib/'));

/** Returns a script with the text of its includes. */
export const readScript = (path: string): string => withIncludes(readProjectFile(path));
