import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { advance, type Delivery, type DeliveryEvent } from '../../../../src/app/mesh/messages/delivery.ts'
import type { DeliveryState } from '../../../../src/shared/mesh/delivery-states.ts'

const OWN = 1
const TO = 2
const OTHER = 3

const written: DeliveryEvent = { type: 'written' }
const lost: DeliveryEvent = { type: 'lost' }
const notSent: DeliveryEvent = { type: 'not-sent' }
const refused: DeliveryEvent = { type: 'refused', error: 'QUEUE_ERROR_1' }
const says = (from: number, error = 'NONE'): DeliveryEvent => ({ type: 'routing', error, from })

function follow(events: readonly DeliveryEvent[], to = TO): Pick<Delivery, 'state' | 'error'> {
  const start: Delivery = { state: 'queued', error: null, from: OWN, to }
  const { state, error } = events.reduce(advance, start)
  return { state, error }
}

describe('the delivery state of our own packet', () => {
  it.each<[string, DeliveryState, string | null, DeliveryEvent[]]>([
    ['waits', 'queued', null, []],
    ['is handed over', 'sent', null, [written]],
    ['is heard being repeated, as our own radio reports', 'relayed', null, [written, says(OWN)]],
    ['arrives', 'delivered', null, [written, says(TO)]],
    ['is repeated and arrives', 'delivered', null, [written, says(OWN), says(TO)]],
    ['arrives before it is heard being repeated', 'delivered', null, [written, says(TO), says(OWN)]],
    ['fails', 'failed', 'MAX_RETRANSMIT', [written, says(OWN, 'MAX_RETRANSMIT')]],
    ['another node reports as failed', 'sent', null, [written, says(OTHER, 'NO_ROUTE')]],
    ['another node reports as received', 'sent', null, [written, says(OTHER)]],
    ['is refused by its destination', 'failed', 'PKI_UNKNOWN_PUBKEY', [written, says(TO, 'PKI_UNKNOWN_PUBKEY')]],
    ['is repeated and then refused', 'failed', 'NO_CHANNEL', [written, says(OWN), says(TO, 'NO_CHANNEL')]],
    [
      'is repeated and then reported as failed by the radio',
      'relayed',
      null,
      [written, says(OWN), says(OWN, 'MAX_RETRANSMIT')],
    ],
    ['fails and arrives late', 'delivered', null, [written, says(OWN, 'MAX_RETRANSMIT'), says(TO)]],
    ['fails and is repeated late', 'relayed', null, [written, says(OWN, 'TIMEOUT'), says(OWN)]],
    ['arrives before other reports', 'delivered', null, [written, says(TO), says(TO, 'GOT_NAK'), lost, says(OWN)]],
    ['is lost', 'unknown', null, [written, lost]],
    ['is lost and turns up', 'delivered', null, [written, lost, says(TO)]],
    ['is lost and fails', 'failed', 'TIMEOUT', [written, lost, says(OWN, 'TIMEOUT')]],
    ['is repeated and then lost', 'relayed', null, [written, says(OWN), lost]],
    ['fails and is then lost', 'failed', 'TIMEOUT', [written, says(OWN, 'TIMEOUT'), lost]],
    ['fails twice, with the first error', 'failed', 'TIMEOUT', [written, says(OWN, 'TIMEOUT'), says(OWN, 'NO_ROUTE')]],
    ['is refused by the radio', 'failed', 'QUEUE_ERROR_1', [written, refused]],
    ['never leaves', 'failed', 'NO_INTERFACE', [notSent]],
  ])('that %s: %s', (_what, state, error, events) => {
    expect(follow(events)).toStrictEqual({ state, error })
  })

  it('a broadcast is at best relayed', () => {
    expect(follow([written, says(OWN), says(OTHER)], 0xffffffff)).toStrictEqual({ state: 'relayed', error: null })
  })
})

describe('any events in any order', () => {
  const error = fc.constantFrom('NONE', 'MAX_RETRANSMIT', 'NO_CHANNEL', 'TIMEOUT')
  const event = fc.oneof(
    fc.constantFrom<DeliveryEvent>(written, lost, notSent, refused, { type: 'withdrawn' }),
    fc.constantFrom<DeliveryEvent>({ type: 'notice', message: 'duty cycle limit' }, { type: 'notice', message: 'hm' }),
    fc.tuple(fc.constantFrom(OWN, TO, OTHER), error).map(([from, name]) => says(from, name)),
  )
  const events = fc.array(event, { maxLength: 12 })
  const isRefusal = (each: DeliveryEvent) => each.type === 'routing' && each.from === TO && each.error !== 'NONE'
  const inTwoOrders = events.chain((all) =>
    fc.tuple(fc.constant(all), fc.shuffledSubarray(all, { minLength: all.length, maxLength: all.length })),
  )

  it('a delivered packet stays delivered, and a packet handed over never waits again', () => {
    fc.assert(
      fc.property(events, events, (before, after) => {
        const { state } = follow(before)
        const then = follow([...before, ...after]).state
        if (state === 'delivered') expect(then).toBe('delivered')
        if (state !== 'queued') expect(then).not.toBe('queued')
        if (state !== 'queued' && state !== 'sent') expect(['queued', 'sent']).not.toContain(then)
      }),
    )
  })

  it('the destination decides: with its acknowledgement every order ends as delivered', () => {
    fc.assert(
      fc.property(inTwoOrders, fc.nat(12), ([, all], place) => {
        expect(follow(all.toSpliced(place, 0, says(TO))).state).toBe('delivered')
      }),
    )
  })

  it('without a refusal by the destination every order ends in the same state', () => {
    fc.assert(
      fc.property(inTwoOrders, ([one, other]) => {
        fc.pre(!one.some(isRefusal))
        expect(follow(other).state).toBe(follow(one).state)
      }),
    )
  })
})
