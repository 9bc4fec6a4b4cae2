import type { findings } from '../../../db/schema.ts'
import { canReadChannel } from '../../../shared/access/scope.ts'
import type { FindingRule } from '../../../shared/mesh/finding-rules.ts'
import { seesNodes, type View } from '../../accounts/access/visible.ts'
import { RULES } from './rules.ts'

/** What decides who is told a finding. */
export type About = {
  readonly rule: FindingRule
  readonly subject: string
  /** First the one to visit. */
  readonly nodes: readonly number[]
  readonly channels: readonly (number | null)[]
}

type Row = Pick<typeof findings.$inferSelect, 'rule' | 'subject' | 'nodes' | 'channels'>

/** What a stored finding is about. */
export function parseFound({ rule, subject, nodes, channels }: Row): About {
  return {
    rule,
    subject,
    nodes: listIn(nodes).map(Number),
    channels: listIn(channels).map((channel) => (channel === null ? null : Number(channel))),
  }
}

function listIn(json: string): readonly unknown[] {
  const list: unknown = JSON.parse(json)
  return Array.isArray(list) ? list : []
}

/**
 * The nodes of a finding that a viewer sees; null: they are not told it, because a channel of its evidence, the first
 * node, one that tells it apart or too many others are not for them.
 */
export function nodesSeen(view: View, about: About): readonly number[] | null {
  const seen = nodesLeft(about, (nodes) => seesNodes(view, nodes))
  return about.channels.every((channel) => canReadChannel(view, channel)) ? seen : null
}

/** The nodes of a finding for which `areIn` holds; null: it is none without the others. */
export function nodesLeft(
  { rule, subject, nodes }: About,
  areIn: (nodes: readonly number[]) => boolean,
): readonly number[] | null {
  const left = areIn(nodes) ? nodes : nodes.filter((num) => areIn([num]))
  const least = RULES.find(({ name }) => name === rule)?.least ?? nodes.length
  return left[0] === nodes[0] && left.length >= least && areIn(subject.split('-').map(Number)) ? left : null
}
