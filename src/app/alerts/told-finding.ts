import * as z from 'zod'
import { FINDING_RULES, type FindingRule } from '../../shared/mesh/finding-rules.ts'
import { said, type Said, type Words } from '../words/words.ts'

/**
 * That something is wrong in the mesh. Without its figures and other nodes: the page of findings has them for whoever
 * may see them then.
 */
export const findingFacts = [
  z.object({
    event: z.literal('finding'),
    name: z.string().describe('The name of the node to visit at that time'),
    rule: z.enum(FINDING_RULES),
  }),
] as const

export function tellFinding(
  words: Words,
  { name, rule }: { readonly name: string; readonly rule: FindingRule },
): string {
  return words.tell(TOLD[rule]({ name }))
}

const TOLD: Readonly<Record<FindingRule, (values: { readonly name: string }) => Said>> = {
  one_way: (values) => said('{name} is heard by a node that it does not hear', values),
  depends: (values) => said('Several nodes are reached only over {name}', values),
  routers: (values) => said('{name} and a router beside it repeat the same packets', values),
  chatty: (values) => said('{name} sends a large share of all packets', values),
  battery: (values) => said('The battery of {name} falls day by day', values),
  restarts: (values) => said('{name} restarts again and again', values),
  clock: (values) => said('The clock of {name} is wrong', values),
  key: (values) => said('The public key of {name} is not its own alone', values),
  hops: (values) => said('The packets of {name} may take more hops than they need', values),
  busy: (values) => said('The channel is nearly full at {name}', values),
  only_gateway: (values) => said('Several nodes are delivered only by {name}', values),
  region_silent: (values) => said('{name} and nodes near it fell silent at the same time', values),
  firmware: (values) => said('{name} runs firmware that is known to be broken', values),
  precise: (values) => said('{name} shares a precise position on a channel that everybody can read', values),
}
