// What each translation lacks, has too much, and which English text changed since a translator last looked at it.
// `npm run languages -- --accept de` notes the present English texts as the ones that the German file follows.
// The compiler finds missing and unknown texts too; it does not see that a text has another meaning now.
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseAst } from 'vite'
import { readServerTexts } from './server-texts.js'

const web = new URL('../src/web/', import.meta.url)
const followed = new URL('languages/followed.json', web)

const read = (path) => readFileSync(new URL(path, web), 'utf8')
const parse = (path) => ({
  source: read(path),
  tree: parseAst(read(path), { lang: path.endsWith('x') ? 'tsx' : 'ts' }),
})

/** Every node of a syntax tree. */
function* nodesOf(value) {
  if (Array.isArray(value)) for (const each of value) yield* nodesOf(each)
  else if (typeof value === 'object' && value !== null) {
    if (typeof value.type === 'string') yield value
    for (const each of Object.values(value)) yield* nodesOf(each)
  }
}

const bare = (node) => (['TSSatisfiesExpression', 'TSAsExpression'].includes(node.type) ? bare(node.expression) : node)

/** Each text below an object by its path, as its source: `columns.name`. */
function textsOf(source, node, path) {
  const value = bare(node)
  if (value.type !== 'ObjectExpression') {
    return [[path.join('.'), source.slice(value.start, value.end).replaceAll(/\s+/g, ' ')]]
  }
  return value.properties.flatMap((property) => {
    if (property.type !== 'Property' || property.computed)
      throw new Error(`${path.join('.')}: texts are listed by name`)
    return textsOf(source, property.value, [...path, String(property.key.name ?? property.key.value)])
  })
}

let english

/** The English texts of the page by path, from every `catalog('name', {…})`. */
export function readEnglish() {
  return (english ??= findEnglish())
}

function findEnglish() {
  const paths = readdirSync(fileURLToPath(web), { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.tsx?$/.test(path) && !path.startsWith('languages/') && path !== 'language.ts')
    .filter((path) => read(path).includes('catalog('))
  return new Map(
    paths.flatMap((path) => {
      const { source, tree } = parse(path)
      return [...nodesOf(tree)]
        .filter(({ type, callee }) => type === 'CallExpression' && callee.name === 'catalog')
        .flatMap((call) => textsOf(source, call.arguments[1], [call.arguments[0].value]))
    }),
  )
}

/** The texts of a translation by path. */
export function readTranslation(tag) {
  const { source, tree } = parse(`languages/${tag}.ts`)
  const words = [...nodesOf(tree)].find(({ type, id }) => type === 'VariableDeclarator' && id.name === 'words')
  return new Map(textsOf(source, words.init, []))
}

const hash = (path, text) => createHash('sha256').update(`${path} ${text}`).digest('base64url').slice(0, 4)

/** What a translator has looked at: hashes of English texts with their paths. */
const readFollowed = () => JSON.parse(read('languages/followed.json'))

export function compareLanguage(tag) {
  const english = readEnglish()
  const translated = readTranslation(tag)
  const known = new Set((readFollowed()[tag] ?? []).join(' ').split(' '))
  return {
    missing: [...english.keys()].filter((path) => !translated.has(path)),
    unknown: [...translated.keys()].filter((path) => !english.has(path)),
    changed: [...english].filter(([path, text]) => translated.has(path) && !known.has(hash(path, text))),
  }
}

/** The texts that the service tells people, by their English ones. */
export function compareServer(tag) {
  const english = new Set(readServerTexts())
  const source = readFileSync(new URL(`../app/words/languages/${tag}.ts`, web), 'utf8')
  const texts = [...nodesOf(parseAst(source, { lang: 'ts' }))].find(
    ({ type, id }) => type === 'VariableDeclarator' && id.name === 'texts',
  )
  const translated = new Set(texts.init.properties.map(({ key }) => String(key.name ?? key.value)))
  return {
    missing: [...english].filter((text) => !translated.has(text)),
    unknown: [...translated].filter((text) => !english.has(text)),
  }
}

function report(tag) {
  const { missing, unknown, changed } = compareLanguage(tag)
  const service = compareServer(tag)
  const lines = [
    ...missing.map((path) => `missing  ${path}`),
    ...unknown.map((path) => `unknown  ${path}`),
    ...changed.map(([path, text]) => `changed  ${path}  ${text}`),
    ...service.missing.map((text) => `missing  service: ${text}`),
    ...service.unknown.map((text) => `unknown  service: ${text}`),
  ]
  console.log(`${tag}: ${lines.length} to be looked at`)
  for (const line of lines) console.log(`  ${line}`)
}

function accept(tag) {
  const hashes = [...readEnglish()].map(([path, text]) => hash(path, text)).toSorted()
  const lines = Array.from({ length: Math.ceil(hashes.length / 20) }, (_, at) => hashes.slice(at * 20, at * 20 + 20))
  const all = { ...readFollowed(), [tag]: lines.map((line) => line.join(' ')) }
  writeFileSync(followed, `${JSON.stringify(all, null, 2)}\n`)
}

const tags = readdirSync(new URL('languages/', web)).flatMap((name) => {
  const [, tag] = /^([a-z]{2}(?:-[A-Z]{2})?)\.ts$/.exec(name) ?? []
  return tag === undefined ? [] : [tag]
})
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [first, tag = ''] = process.argv.slice(2)
  if (first === '--accept' && tags.includes(tag)) accept(tag)
  else if (first === undefined || tags.includes(first))
    for (const each of first === undefined ? tags : [first]) report(each)
  else throw new Error(`Usage: npm run languages [-- [--accept] ${tags.join('|')}]`)
}
