import { readFileSync } from 'node:fs'

/** The same exports, each of them `value`. */
export function replaceExports(file, value) {
  const code = readFileSync(file, 'utf8')
  const single = [...code.matchAll(/^export (?:async )?(?:function|const|class) (\w+)/gm)].map(([, name]) => name)
  const lists = [...code.matchAll(/^export \{([^}]*)\};?$/gm)].flatMap(([, names]) => names.split(','))
  const listed = lists.flatMap((name) => name.match(/\w+(?=\s*$)/) ?? [])
  const names = new Set([...single, ...listed])
  return `const value = ${value}\nexport { ${[...names].map((name) => `value as ${name}`).join(', ')} }`
}
