// Comparisons of answers by processor time: the service, its limits, and a time where there is no limit.
import { type Asking, load } from '../load/requests.ts'
import { inRounds, ratioOf, ROUNDS } from '../ratio.ts'
import { readCpu, type Running } from '../servers/processes.ts'
import { median, report } from '../table.ts'

const SECONDS = Number(process.env['BENCH_SECONDS'] ?? 0.5)
export const PEOPLE = 8
/** Requests after which the code of a route no longer becomes faster. */
export const WARM = 5000
const MAX_WARM_ROUNDS = 10

type Measured = { readonly answers: number; readonly cpuUs: number; readonly rate: number }
export type Side<Server extends Running = Running> = { readonly server: Server } & Asking

async function measure({ server, ...asking }: Side): Promise<Measured> {
  const before = await readCpu(server)
  const { answers, rate } = await load(server.port, asking, { connections: 2 * PEOPLE, seconds: SECONDS })
  return { answers, cpuUs: ((await readCpu(server)) - before) / answers, rate }
}

/** By requests, not by time: a limit that has answered few yet runs slower code than a service that has answered many. */
export async function warmUp(side: Side, requests = WARM): Promise<void> {
  let answered = 0
  for (let round = 0; round < MAX_WARM_ROUNDS && answered < requests; round++) answered += (await measure(side)).answers
}

/**
 * The service against its limit and, with `bare` (null: without a target), against the same path on plain `node:http`.
 * In turn, in the other direction in every second round, so that all see the same machine.
 */
export async function compare(
  work: string,
  target: number | null,
  limit: Side<Running & { readonly bare?: Running }>,
  own: Side,
  bare: number | null = null,
): Promise<void> {
  const plain = limit.server.bare
  const sides = { own, limit, ...(plain !== undefined && { bare: { ...limit, server: plain } }) }
  const names = plain === undefined ? (['limit', 'own'] as const) : (['limit', 'own', 'bare'] as const)
  const limits = names.filter((name) => name !== 'own')
  for (const name of names) await warmUp(sides[name] ?? own)
  const rounds = await inRounds(limits, async (round) => {
    const measured = { own: Number.NaN, limit: Number.NaN, bare: Number.NaN, rate: Number.NaN }
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      const { cpuUs, rate } = await measure(sides[name] ?? own)
      measured[name] = cpuUs
      if (name === 'own') measured.rate = rate
    }
    return measured
  })
  const shown = limits.map((name) => ({
    name: plain === undefined ? '' : name === 'bare' ? 'bare ' : 'inside ',
    target: name === 'bare' ? bare : target,
    us: median(rounds.map((round) => round[name])).toFixed(0),
    ...ratioOf(rounds, name),
  }))
  const us = median(rounds.map((round) => round.own)).toFixed(0)
  const rate = median(rounds.map((round) => round.rate)).toFixed(0)
  const targets = shown.flatMap(({ name, target: least }) => (least === null ? [] : [`${name}≥ ${least}`]))
  const isMissed = shown.some(({ isWrong, ratio, target: least }) => isWrong || (least !== null && ratio < least))
  report(
    work,
    `${shown.map(({ name, text }) => name + text).join(', ')} (${us} of ${shown.map((each) => each.us).join(' and ')} µs, ${rate}/s)`,
    targets.join(', '),
    isMissed ? false : targets.length === 0 ? null : true,
  )
}

/** Work without a limit to compare with, except its time. */
export async function cost(work: string, targetMs: number | null, own: Side, warm?: number): Promise<void> {
  await warmUp(own, warm)
  const rounds: Measured[] = []
  for (let round = 0; round < ROUNDS; round++) rounds.push(await measure(own))
  const ms = median(rounds.map(({ cpuUs }) => cpuUs)) / 1000
  const rate = median(rounds.map((round) => round.rate)).toFixed(0)
  const target = targetMs === null ? '' : `≤ ${targetMs} ms`
  report(work, `${ms.toFixed(2)} ms (${rate}/s)`, target, targetMs === null ? null : ms <= targetMs)
}
