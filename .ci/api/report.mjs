// @ts-check
import { Extractor, ExtractorConfig } from '@microsoft/api-extractor';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { SUBPATHS } from '../subpaths.mjs';

/*
 * Compares the public types of the root and of each subpath with their reports in this folder. With `--local` it writes
 * the reports instead.
 */
const root = fileURLToPath(new URL('../..', import.meta.url));
const configFile = join(root, '.ci/api/api-extractor.json');
const localBuild = process.argv.includes('--local');

const entries = [['index', 'holdfast'], ...Object.keys(SUBPATHS).map((name) => [name, `holdfast-${name}`])];
const failed = entries.filter(([file, report]) => {
  const configObject = ExtractorConfig.loadFile(configFile);
  configObject.mainEntryPointFilePath = join(root, `dist/${file}.d.mts`);
  Object.assign(configObject.apiReport ?? {}, { reportFileName: `${report}.api.md` });
  const config = ExtractorConfig.prepare({
    configObject,
    configObjectFullPath: configFile,
    packageJsonFullPath: join(root, 'package.json'),
  });
  return !Extractor.invoke(config, { localBuild }).succeeded;
});
if (failed.length > 0) process.exitCode = 1;
