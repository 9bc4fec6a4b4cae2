// The English texts that the service tells people, found in the sources: what a translation in src/app/words/languages
// has as keys.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseAst } from 'vite'

const SRC = fileURLToPath(new URL('../src/', import.meta.url))
/** Only administrators at the command line read these; it speaks English. */
const CONSOLE =
  /^(web|edge\/deploy|node\/console|node\/start|app\/words\/languages)\b|^app\/(accounts\/users\/first-admin|retention\/state)/

function* nodesOf(value) {
  if (Array.isArray(value)) for (const each of value) yield* nodesOf(each)
  else if (typeof value === 'object' && value !== null) {
    if (typeof value.type === 'string') yield value
    for (const each of Object.values(value)) yield* nodesOf(each)
  }
}

/** Checks of a schema whose second argument says what is wrong. */
const CHECKS = new Set(['regex', 'refine', 'min', 'max', 'length'])

const isText = (node) => node?.type === 'Literal' && typeof node.value === 'string'

/** A text, or those between which a condition chooses. */
function chosenTexts(node) {
  if (node?.type === 'ConditionalExpression') return [node.consequent, node.alternate].flatMap(chosenTexts)
  return isText(node) ? [node.value] : []
}

/** The texts in one file. */
function textsIn(path) {
  const source = readFileSync(join(SRC, path), 'utf8')
  const tree = parseAst(source, { lang: 'ts' })
  const texts = []
  for (const node of nodesOf(tree)) {
    const [first, second] = node.arguments ?? []
    const callee = node.callee?.name ?? node.callee?.property?.name
    if (node.type === 'NewExpression' && callee === 'AppError') texts.push(...chosenTexts(second))
    if (node.type === 'NewExpression' && callee === 'SendFailure') texts.push(...chosenTexts(first))
    if (node.type === 'Property' && node.key.name === 'result') texts.push(...chosenTexts(node.value))
    if (node.type === 'CallExpression' && (callee === 'say' || callee === 'said') && isText(first))
      texts.push(first.value)
    if (node.type === 'CallExpression' && callee === 'count' && isText(second)) texts.push(node.arguments[2].value)
    if (node.type === 'CallExpression' && callee === 'refusal' && isText(first)) texts.push(first.value)
    if (node.type === 'CallExpression' && CHECKS.has(callee) && isText(second)) texts.push(second.value)
    if (node.type === 'Property' && node.key.name === 'message') texts.push(...chosenTexts(node.value))
    if (node.type === 'VariableDeclarator' && node.id.name === 'ERRORS') {
      for (const array of nodesOf(node.init)) if (array.type === 'ArrayExpression') texts.push(array.elements[1].value)
    }
    if (node.type === 'VariableDeclarator' && node.id.name === 'PATTERNS') {
      for (const each of nodesOf(node.init)) if (isText(each)) texts.push(each.value)
    }
  }
  return texts
}

let all

/** Every English text, in order. */
export function readServerTexts() {
  return (all ??= findServerTexts())
}

function findServerTexts() {
  const paths = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter(
    (path) => path.endsWith('.ts') && !CONSOLE.test(path) && !path.endsWith('.d.ts'),
  )
  return [...new Set(paths.flatMap(textsIn))].toSorted((a, b) => (a < b ? -1 : 1))
}
