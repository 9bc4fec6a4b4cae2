import { giveTurnsBy } from '../../src/app/base/pacing/next-turn.ts'

/** How often `work` lets others go first. */
export async function turnsDuring(work: () => Promise<unknown>): Promise<number> {
  let turns = 0
  giveTurnsBy((go) => {
    turns++
    setTimeout(go, 0)
  })
  try {
    await work()
  } finally {
    giveTurnsBy((go) => setTimeout(go, 0))
  }
  return turns
}
