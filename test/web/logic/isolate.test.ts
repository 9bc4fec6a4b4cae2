import { expect, test } from 'vitest'
import { ISOLATE, ISOLATE_END, isolateNames, needsIsolation } from '../../../src/web/isolate.ts'

const TEXTS = {
  plain: 'Delete',
  remove: (name: string, count: number) => `Delete “${name}” (${count})?`,
  list: { of: (names: readonly string[]) => names.join(', ') },
  state: (key: 'on' | 'off') => ({ on: 'An', off: 'Aus' })[key],
}
const alone = (name: string) => ISOLATE + name + ISOLATE_END

test('in a sentence a name of the other direction is isolated', () => {
  const texts = isolateNames(TEXTS, false)
  expect(texts.plain).toBe('Delete')
  expect(texts.remove('Hill 5!', 2)).toBe('Delete “Hill 5!” (2)?')
  expect(texts.remove('תחנה', 2)).toBe(`Delete “${alone('תחנה')}” (2)?`)
  expect(texts.remove('תחנה 5', 2)).toBe(`Delete “${alone('תחנה 5')}” (2)?`)
  expect(texts.list.of(['Hill', 'تل ١'])).toBe(`Hill, ${alone('تل ١')}`)
})

test('from right to left every name is isolated, but no key', () => {
  const texts = isolateNames(TEXTS, true)
  expect(texts.remove('Hill 5!', 2)).toBe(`Delete “${alone('Hill 5!')}” (2)?`)
  expect(texts.state('off')).toBe('Aus')
})

test('in a sentence within a sentence names stay isolated', () => {
  const texts = isolateNames(TEXTS, false)
  expect(texts.remove(texts.remove('תל 5', 2), 3)).toBe(`Delete “Delete “${alone('תל 5')}” (2)?” (3)?`)
})

test.each([`תל${ISOLATE_END} 5${ISOLATE}`, `תל ${alone('x')} 5`, `${ISOLATE}תל 5`])(
  'a name cannot leave its isolation: %j',
  (name) => {
    const cleaned = name.replaceAll(ISOLATE, '').replaceAll(ISOLATE_END, '')
    expect(isolateNames(TEXTS, false).remove(name, 1)).toBe(`Delete “${alone(cleaned)}” (1)?`)
  },
)

test('values without letters keep their order from right to left only', () => {
  expect([needsIsolation('10–20', true), needsIsolation('10–20', false), needsIsolation(' · ', true)]).toEqual([
    true,
    false,
    false,
  ])
})
