import { and, desc, eq, min, sql } from 'drizzle-orm'
import * as z from 'zod'
import { findingLooks, findingMutes, findings, nodes } from '../../../db/schema.ts'
import { formatNodeId } from '../../../meshtastic/node-id.ts'
import { FINDING_RULES } from '../../../shared/mesh/finding-rules.ts'
import { audit } from '../../audit/audit.ts'
import type { Reader, SignedInCtx } from '../../base/context.ts'
import { nextTurn } from '../../base/pacing/next-turn.ts'
import { AppError } from '../../http/errors.ts'
import { nodeIdField, nodeNumField, timeField } from '../../http/fields.ts'
import { nodesSeen, parseFound } from './seen.ts'

const common = {
  subject: z.string().describe('Tells the findings of a rule apart'),
  since: timeField.describe('When it was found first'),
  isLikely: z.boolean().describe('Most of what is known fits; false: something speaks for it'),
  nodes: z
    .array(z.object({ nodeNum: nodeNumField, nodeId: nodeIdField, name: z.string().nullable() }))
    .describe('The first one is the one to visit'),
  mutedBy: z.string().nullable().describe('Who does not want it to be told; null: nobody'),
  isMuted: z.boolean(),
}

export const findingsSchema = z
  .object({
    at: timeField.nullable().describe('When everything was looked at last; null: not yet'),
    findings: z
      .array(
        z.object({
          rule: z.enum(FINDING_RULES),
          ...common,
          evidence: z
            .record(z.string(), z.union([z.number(), z.string(), z.boolean()]))
            .describe('Figures, by the rule'),
        }),
      )
      .describe('Those found first recently come first'),
  })
  .meta({ id: 'Findings', description: 'What is wrong in the mesh, from what is stored. Nothing is sent to find it' })
type Findings = z.infer<typeof findingsSchema>

export const muteSchema = z.strictObject({ muted: z.boolean() })

/** Nodes in an answer: with very many findings each names fewer. */
const MAX_NAMED = 8000

const evidenceSchema = findingsSchema.shape.findings.element.shape.evidence

/** What the viewer may be told: all of it is about nodes and channels that they see. */
export async function listFindings({ store, viewer }: Reader): Promise<Findings> {
  const { view, permissions } = viewer
  const at =
    (
      await store.db
        .select({ at: min(findingLooks.at) })
        .from(findingLooks)
        .get()
    )?.at ?? null
  if (!permissions.nodes.read) return { at, findings: [] }
  const rows = await store.db
    .select()
    .from(findings)
    .orderBy(desc(findings.since), findings.rule, findings.subject)
    .all()
  const mutes = await store.db.select().from(findingMutes).all()
  const muted = new Map(mutes.map((mute) => [`${mute.rule} ${mute.subject}`, mute]))
  const shown = rows.flatMap((row) => {
    const found = parseFound(row)
    const seen = nodesSeen(view, found)
    return seen === null ? [] : [{ row, seen, hides: found.nodes.length - seen.length }]
  })
  const most = Math.max(2, Math.floor(MAX_NAMED / Math.max(1, shown.length)))
  await nextTurn()
  const names = await store.db
    .select({ nodeNum: nodes.nodeNum, name: nodes.longName })
    .from(nodes)
    .where(
      sql`${nodes.nodeNum} in (select value from json_each(${JSON.stringify([...new Set(shown.flatMap(({ seen }) => seen.slice(0, most)))])}))`,
    )
    .all()
  const nameOf = new Map(names.map(({ nodeNum, name }) => [nodeNum, name]))
  return {
    at,
    findings: shown.map(({ row, seen, hides }) => {
      const evidence = evidenceSchema.parse(JSON.parse(row.evidence))
      const { lost } = evidence
      const mute = muted.get(`${row.rule} ${row.subject}`)
      return {
        rule: row.rule,
        subject: row.subject,
        since: row.since,
        isLikely: row.isLikely,
        nodes: seen
          .slice(0, most)
          .map((nodeNum) => ({ nodeNum, nodeId: formatNodeId(nodeNum), name: nameOf.get(nodeNum) ?? null })),
        evidence: typeof lost === 'number' ? { ...evidence, lost: lost - hides } : evidence,
        isMuted: mute !== undefined,
        mutedBy: mute?.mutedBy ?? null,
      }
    }),
  }
}

/** Throws `not_found` for a finding that the viewer is not told. */
export async function muteFinding(ctx: SignedInCtx, name: string, subject: string, muted: boolean): Promise<void> {
  const { findings: told } = await listFindings(ctx)
  const { rule } = told.find((each) => each.rule === name && each.subject === subject) ?? {}
  if (rule === undefined) throw new AppError('not_found')
  const { db } = ctx.store
  const change = muted
    ? db
        .insert(findingMutes)
        .values({ rule, subject, mutedAt: ctx.now(), mutedBy: ctx.viewer.user.username })
        .onConflictDoNothing()
    : db.delete(findingMutes).where(and(eq(findingMutes.rule, rule), eq(findingMutes.subject, subject)))
  await ctx.store.atomic([change, audit(ctx, 'finding_muted', { rule, subject, muted }, { onlyIfChanged: true })])
}
