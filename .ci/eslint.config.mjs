// @ts-check
import { defineConfig } from 'eslint/config';
import { fileURLToPath } from 'node:url';
import tseslint from 'typescript-eslint';

export default defineConfig(
  { ignores: ['dist/', 'site/', '.tmp/', 'node_modules/', '**/fixtures/**'] },
  tseslint.configs.strictTypeChecked,
  {
    languageOptions: {
      parserOptions: { projectService: true, tsconfigRootDir: fileURLToPath(new URL('..', import.meta.url)) },
    },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    rules: {
      eqeqeq: ['error', 'always', { null: 'ignore' }],
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      // The decorator of a module of Nest says all that its class has to say.
      '@typescript-eslint/no-extraneous-class': ['error', { allowWithDecorator: true }],
      // After an await, and for callers without TypeScript, things are other than the types say: we look again.
      '@typescript-eslint/no-unnecessary-condition': 'off',
      // With private fields a method that lost its object fails at its first use; as a mark in a stack it is no mistake.
      '@typescript-eslint/unbound-method': 'off',
      // `() => emitter.off(...)` is a shorter way to say the same as with braces.
      '@typescript-eslint/no-confusing-void-expression': 'off',
    },
  },
  {
    files: ['src/**'],
    rules: {
      'no-restricted-syntax': [
        'error',
        {
          selector: 'AssignmentExpression[left.type="MemberExpression"] > ArrowFunctionExpression.right',
          message:
            'V8 makes it in the old space, where it keeps all that it can reach through every scavenge: give the property ' +
            'a function that has a name, or an object with a method.',
        },
      ],
    },
  },
  {
    files: ['tests/**', 'examples/**', 'bench/**', 'docs/**'],
    rules: {
      // A test proves with `!` what the next line would prove by failing.
      '@typescript-eslint/no-non-null-assertion': 'off',
      '@typescript-eslint/require-await': 'off',
    },
  },
  // There a type comment on a declaration is all the assertion that JSON.parse can have.
  { files: ['**/*.mjs'], rules: { '@typescript-eslint/no-unsafe-assignment': 'off' } },
  { files: ['**/*.cjs', '**/*.js'], extends: [tseslint.configs.disableTypeChecked] },
  { files: ['**/*.cjs'], rules: { '@typescript-eslint/no-require-imports': 'off' } },
);
