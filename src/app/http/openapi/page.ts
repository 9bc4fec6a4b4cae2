import { html } from 'hono/html'
import * as z from 'zod'
import { nextTurn } from '../../base/pacing/next-turn.ts'

const media = z.record(z.string(), z.object({ schema: z.unknown().optional() }))
const operationSchema = z.object({
  summary: z.string(),
  description: z.string().optional(),
  tags: z.array(z.string()),
  'x-access': z.object({
    kind: z.string(),
    resource: z.string().optional(),
    action: z.string().optional(),
    scope: z.string().nullish(),
  }),
  parameters: z.array(
    z.object({
      name: z.string(),
      in: z.string(),
      required: z.boolean(),
      description: z.string().optional(),
      schema: z.unknown(),
    }),
  ),
  requestBody: z.object({ required: z.boolean(), content: media }).optional(),
  responses: z.record(z.string(), z.object({ description: z.string(), content: media.optional() })),
})
type Operation = z.infer<typeof operationSchema> & { method: string; path: string }

const documentSchema = z.object({
  paths: z.record(z.string(), z.record(z.string(), operationSchema)),
  components: z.object({ schemas: z.record(z.string(), z.unknown()) }),
})

/**
 * The API document as a single plain HTML page.
 * Decision: docs/decisions/short-decisions.md#the-api-page-is-plain-html-without-a-script
 */
export async function docsPage(document: unknown) {
  const { paths, components } = documentSchema.parse(document)
  await nextTurn()
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ ...operation, method: method.toUpperCase(), path })),
  )
  const groups = [...Map.groupBy(operations, ({ tags }) => tags[0] ?? '')]
  const sections = await inTurns(
    groups,
    ([tag, all]) =>
      html`<section>
        <h2 id="${tag}">${tag}</h2>
        ${all.map(operationPart)}
      </section>`,
  )
  const schemas = await inTurns(
    Object.entries(components.schemas),
    ([name, schema]) =>
      html`<h3 id="schema-${name}">${name}</h3>
        ${schemaBlock(schema)}`,
  )
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>Mesh Monitoring Service: API</title>
        <link rel="stylesheet" href="docs/style.css" />
      </head>
      <body>
        <nav aria-label="Groups">
          ${groups.map(([tag]) => html`<a href="#${tag}">${tag}</a>`)} <a href="#schemas">schemas</a>
          <a href="openapi.json">The document (JSON)</a>
        </nav>
        <main>
          <h1>Mesh Monitoring Service: HTTP API</h1>
          <p>
            JSON in camelCase; every time is in milliseconds since the Unix epoch. Errors are
            <code>application/problem+json</code> with a <code>code</code> and a <code>requestId</code>.
          </p>
          ${sections}
          <section>
            <h2 id="schemas">Schemas</h2>
            ${schemas}
          </section>
        </main>
      </body>
    </html>`
}

/** Parts of the page, each with a turn of the event loop for everybody else before it. */
async function inTurns<T>(all: readonly T[], part: (each: T) => ReturnType<typeof html>) {
  const parts = []
  for (const each of all) {
    await nextTurn()
    parts.push(await part(each))
  }
  return parts
}

function operationPart(operation: Operation) {
  const { method, path, summary, description, parameters, requestBody, responses } = operation
  return html`<details>
    <summary>
      <b class="${method.toLowerCase()}">${method}</b> <code>${path}</code> <span>${summary}</span>
      <em>${accessText(operation['x-access'])}</em>
    </summary>
    ${description === undefined ? '' : html`<p>${description}</p>`}
    ${
      parameters.length > 0
        ? html`<h3>Parameters</h3>
            <ul>
              ${parameters.map(
                (parameter) =>
                  html`<li>
                    <code>${parameter.name}</code> in ${parameter.in}${parameter.required ? ', required' : ''}:
                    ${parameter.description ?? ''} <code>${JSON.stringify(parameter.schema)}</code>
                  </li>`,
              )}
            </ul>`
        : ''
    }
    ${
      requestBody
        ? html`<h3>Body${requestBody.required ? '' : ' (optional)'}</h3>
            ${schemaPart(requestBody.content)}`
        : ''
    }
    <h3>Answers</h3>
    ${Object.entries(responses).map(
      ([status, answer]) =>
        html`<p><b>${status}</b> ${answer.description}</p>
          ${Number(status) < 400 && answer.content ? schemaPart(answer.content) : ''}`,
    )}
  </details>`
}

function schemaPart(content: z.infer<typeof media>) {
  return Object.entries(content).map(([type, { schema }]) =>
    schema === undefined ? html`<p><code>${type}</code></p>` : schemaBlock(schema),
  )
}

function schemaBlock(schema: unknown) {
  const text = JSON.stringify(schema, null, 2)
  const names = new Set([...text.matchAll(/"#\/components\/schemas\/(\w+)"/g)].map(([, name]) => name ?? ''))
  return html`<pre tabindex="0" aria-label="Schema">${text}</pre>
    ${names.size === 0 ? '' : html`<p>${[...names].map((name) => html`<a href="#schema-${name}">${name}</a> `)}</p>`}`
}

function accessText(rule: Operation['x-access']): string {
  switch (rule.kind) {
    case 'anyone':
      return 'everybody'
    case 'permission':
      return `${rule.resource ?? ''} ${rule.action ?? ''}`
    case 'token':
      return `a token with ${rule.scope ?? ''}`
    case 'admin':
      return rule.scope ? `administrators, or a token with ${rule.scope}` : 'administrators'
    default:
      return 'signed in'
  }
}

export const STYLE = `
:root { color-scheme: light dark; --line: light-dark(#d5dbe1, #39424d); --soft: light-dark(#56616d, #a3afbb); }
body { margin: 0; font: 16px/1.5 system-ui, sans-serif; background: light-dark(#fff, #12171d); color: light-dark(#17202a, #e5eaf0); }
nav { position: sticky; top: 0; display: flex; gap: 1rem; flex-wrap: wrap; padding: .6rem 1rem; background: inherit; border-bottom: 1px solid var(--line); }
main { max-width: 60rem; margin: 0 auto; padding: 1rem; }
a { color: light-dark(#0b5cad, #7db8ff); }
details { border-bottom: 1px solid var(--line); padding: .35rem 0; }
summary { cursor: pointer; }
summary b { display: inline-block; min-width: 4.2rem; font-size: .8rem; }
summary span { color: var(--soft); }
summary em { font-size: .85rem; font-style: normal; border: 1px solid var(--line); border-radius: .6rem; padding: 0 .5rem; }
h3 { font-size: .9rem; margin: .8rem 0 .2rem; }
pre { max-height: 24rem; overflow: auto; padding: .6rem; border: 1px solid var(--line); font-size: .8rem; }
code { overflow-wrap: anywhere; }
`
