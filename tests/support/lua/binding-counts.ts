import ts from 'typescript';
import { projectFiles } from '../project/project-files.js';

export interface BindingCounts {
  readonly keys: number | 'variable';
  /** Without the not-after, which the client adds. */
  readonly args: number | 'variable';
}

/** The numbers of keys and of arguments that the types of the bindings say, by `path (name)`. */
export function bindingCounts(): ReadonlyMap<string, BindingCounts> {
  const paths = projectFiles('src/redis/scripts', '.ts');
  const { config } = ts.readConfigFile('tsconfig.json', (path) => ts.sys.readFile(path)) as { config: object };
  const { options } = ts.parseJsonConfigFileContent({ ...config, include: [] }, ts.sys, '.');
  const program = ts.createProgram([...paths, 'src/redis/lua.d.ts'], options);
  const checker = program.getTypeChecker();
  const counts = new Map<string, BindingCounts>();
  for (const path of paths) {
    const module = checker.getSymbolAtLocation(program.getSourceFile(path)!)!;
    for (const each of checker.getExportsOfModule(module)) {
      const type = checker.getTypeOfSymbol(each) as ts.TypeReference;
      if (type.symbol?.name !== 'Operation') continue;
      const [keys, args] = checker.getTypeArguments(type);
      counts.set(`${path} (${each.name})`, { keys: lengthOf(keys!), args: lengthOf(args!) });
    }
  }
  return counts;
}

function lengthOf(type: ts.Type): number | 'variable' {
  const { fixedLength, combinedFlags } = (type as ts.TypeReference).target as ts.TupleType;
  return combinedFlags === undefined || (combinedFlags & ts.ElementFlags.Variable) !== 0 ? 'variable' : fixedLength;
}
