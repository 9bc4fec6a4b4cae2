import type { KnownChannel } from '../../../../src/app/mesh/radios/known-channel.ts'
import { describe, expect, it } from 'vitest'
import { createChannelTable } from '../../../../src/app/mesh/radios/channel-table.ts'
import { numberChannel } from '../../../../src/meshtastic/channel-identity.ts'

type Kind = KnownChannel['kind']

const channel = (kind: Kind, source: string, index: number, identity: string | null, name = ''): KnownChannel => ({
  kind,
  source,
  index,
  name,
  role: identity === null ? 'DISABLED' : 'SECONDARY',
  identity,
  lastHeard: null,
})
const tableOf = (radios: readonly string[] | null, channels: readonly KnownChannel[]) => {
  const table = createChannelTable(radios)
  for (const one of channels) table.tell(one)
  return table
}

describe('numbers of channels', () => {
  it('come from the first configured radio, then from radios of collectors, never from a former radio', () => {
    const all = [
      channel('tcp', 'former', 4, '8:LongFast'),
      channel('ingest', 'hill', 3, '8:LongFast'),
      channel('ingest', 'hill', 5, '9:Hill', 'Hill'),
      channel('tcp', 'second', 2, '8:LongFast'),
      channel('tcp', 'first', 1, '8:LongFast'),
    ]
    const table = tableOf(['first', 'second'], all)
    expect([table.numberOf('second', 2), table.numberOf('hill', 3), table.numberOf('former', 4)]).toStrictEqual([
      1, 1, 1,
    ])
    expect([table.numberOf('hill', 5), table.numberOf('broker', numberChannel('9:Hill'))]).toStrictEqual([5, 5])
    expect(tableOf([], all).numberOf('broker', numberChannel('8:LongFast'))).toBe(3)
    expect(tableOf(null, all).numberOf('broker', numberChannel('8:LongFast'))).toBe(4)
  })

  it('are known for a broker even if its name for the channel was lost or is from an earlier version', () => {
    const radio = channel('tcp', 'radio', 0, '8:LongFast')
    const number = numberChannel('8:LongFast')
    expect(tableOf(['radio'], [radio]).numberOf('broker', number)).toBe(0)
    const earlier = channel('ingest', 'broker', 264, '8:LongFast', 'LongFast')
    expect(tableOf(['radio'], [radio, earlier]).numberOf('broker', 8)).toBe(0)
    const alone = tableOf(['radio'], [earlier])
    expect(alone.numberOf('broker', 8)).toBe(number)
    expect(alone.refilings()).toStrictEqual([{ source: 'broker', from: 264, to: number }])
    expect(alone.list()).toStrictEqual([{ source: 'broker', index: number, name: 'LongFast', role: 'SECONDARY' }])
  })

  it('remain channel indexes where nothing else is known', () => {
    const table = tableOf(['radio'], [channel('tcp', 'radio', 1, null)])
    expect([table.numberOf('radio', 1), table.numberOf('other', 7), table.indexIn('other', 7)]).toStrictEqual([1, 7, 7])
    expect(table.indexIn('radio', 1)).toBeNull()
  })
})

describe('the list', () => {
  it('prefers enabled channels, but not those of a former radio', () => {
    const off = channel('tcp', 'first', 1, null)
    const on = channel('tcp', 'second', 1, '7:Hut', 'Hut')
    expect(tableOf(['first', 'second'], [off, on]).list()).toMatchObject([{ source: 'second', index: 1, name: 'Hut' }])
    expect(tableOf(['first'], [off, on]).list()).toMatchObject([{ source: 'first', index: 1, role: 'DISABLED' }])
    expect(tableOf([], [on]).list()).toMatchObject([{ source: 'second', index: 1, name: 'Hut' }])
  })

  it('names a channel after its preset if its number does not identify it', () => {
    const table = tableOf(
      ['first', 'second'],
      [channel('tcp', 'first', 0, '7:Hut', 'Hut'), channel('tcp', 'second', 0, '8:LongFast')],
    )
    expect(table.list()).toMatchObject([
      { index: 0, name: 'Hut' },
      { index: numberChannel('8:LongFast'), name: 'LongFast' },
    ])
  })
})
