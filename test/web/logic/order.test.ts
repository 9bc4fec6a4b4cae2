import { expect, test } from 'vitest'
import { arrange, isSameOrder } from '../../../src/web/state/order.ts'

const row = (id: number, value = '') => ({ id, value })
const idOf = ({ id }: { id: number }) => id

test('rows keep their order and get their new values', () => {
  const shown = [row(3), row(2), row(1)]
  expect(arrange(shown, [row(1, 'heard'), row(3), row(2)], idOf)).toEqual({
    rows: [row(3), row(2), row(1, 'heard')],
    newer: 0,
    isMoved: true,
  })
  expect(arrange(shown, [row(3, 'a'), row(2), row(1)], idOf)).toMatchObject({ newer: 0, isMoved: false })
})

test('new rows are counted, and one that disappeared stays where it was', () => {
  const shown = [row(3), row(2, 'last'), row(1)]
  expect(arrange(shown, [row(5), row(4), row(3), row(1)], idOf)).toEqual({
    rows: [row(3), row(2, 'last'), row(1)],
    newer: 2,
    isMoved: true,
  })
  expect(arrange(shown, [row(4), ...shown], idOf)).toMatchObject({ newer: 1, isMoved: false })
})

test('rows after the last one that is shown are added: they move nothing', () => {
  const shown = [row(3), row(2)]
  expect(arrange(shown, [row(4), row(3), row(2), row(1), row(0)], idOf)).toEqual({
    rows: [row(3), row(2), row(1), row(0)],
    newer: 1,
    isMoved: false,
  })
  expect(arrange(shown, [row(9), row(8)], idOf)).toEqual({ rows: shown, newer: 2, isMoved: true })
})

test('values change no order; a moved, new or missing row does', () => {
  const shown = [row(3), row(2), row(1)]
  expect(isSameOrder(shown, [row(3, 'heard'), row(2), row(1)], idOf)).toBe(true)
  expect(isSameOrder(shown, [row(2), row(3), row(1)], idOf)).toBe(false)
  expect(isSameOrder(shown, [row(4), ...shown], idOf)).toBe(false)
  expect(isSameOrder(shown, [row(3), row(2)], idOf)).toBe(false)
})
