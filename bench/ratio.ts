import { median, report } from './table.ts'

/** Rounds of one comparison: at least, and at most if their ratios differ. */
export const ROUNDS = 5
const MAX_ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 30)
/** The standard error of a ratio that is exact enough. */
const EXACT = 0.02
/** The service does the work of the limit and more: if it is surely faster, the limit is not a limit. */
const HONEST = 1.05

/** The standard error of a median, from the median deviation: a few disturbed rounds hardly change it. */
function errorOf(values: readonly number[]): number {
  const middle = median(values)
  const deviation = 1.4826 * median(values.map((value) => Math.abs(value - middle)))
  return (1.2533 * deviation) / Math.sqrt(values.length)
}

type Costs<Side extends string> = Readonly<Record<Side | 'own', number>>
type Ratio = { readonly ratio: number; readonly text: string; readonly isWrong: boolean }

/** Of a limit to the service, over all rounds. */
export function ratioOf<Side extends string>(rounds: readonly Costs<Side>[], side: Side): Ratio {
  const ratios = rounds.map((round) => round[side] / round.own)
  const [ratio, error] = [median(ratios), errorOf(ratios)]
  const isWrong = ratio - 2 * error > HONEST
  return { ratio, isWrong, text: `${ratio.toFixed(2)} ± ${error.toFixed(2)}${isWrong ? ', the limit is wrong' : ''}` }
}

/** Repeats a round until the standard error of each ratio is small enough. */
export async function inRounds<Side extends string, Round extends Costs<Side>>(
  sides: readonly Side[],
  measure: (round: number) => Promise<Round>,
): Promise<Round[]> {
  const rounds: Round[] = []
  const isExact = (side: Side) => errorOf(rounds.map((round) => round[side] / round.own)) <= EXACT
  while (rounds.length < Math.min(ROUNDS, MAX_ROUNDS) || (rounds.length < MAX_ROUNDS && !sides.every(isExact))) {
    rounds.push(await measure(rounds.length))
  }
  return rounds
}

/** One line for a service and one limit. `cost` shows both costs. */
export function reportRatio(
  work: string,
  rounds: readonly Costs<'limit'>[],
  { target, cost }: { readonly target: number; readonly cost: (own: number, limit: number) => string },
): void {
  const { ratio, text, isWrong } = ratioOf(rounds, 'limit')
  const of = (side: 'own' | 'limit') => median(rounds.map((round) => round[side]))
  report(work, `${text} (${cost(of('own'), of('limit'))})`, `≥ ${target}`, ratio >= target && !isWrong)
}
