import type { InferResponseType } from 'hono/client'
import type { ComponentChildren } from 'preact'
import { SECOND_MS } from '../../../shared/time.ts'
import type { api } from '../../api.ts'
import { dateMinutes, decimal, duration } from '../../format.ts'
import { distance } from '../../measure.ts'
import { linkNames, markOf } from '../../parts/mesh/linked-names.tsx'
import { decibels } from '../../parts/mesh/snr.ts'
import { findingTexts } from '../../strings/mesh/findings.ts'

export type Findings = InferResponseType<typeof api.findings.$get, 200>
export type Finding = Findings['findings'][number]

/** Names in a sentence; the others are counted. */
const NAMED = 5

/** A finding as a sentence with its evidence; names lead to the nodes. */
export function sentence({ rule, nodes, evidence, isLikely }: Finding): ComponentChildren {
  const marks = nodes.map((_, index) => markOf(index))
  const [a = '', b = ''] = marks
  const others = marks.slice(1, NAMED + 1)
  const left = nodes.length - 1 - others.length
  const list = (shown: readonly string[], rest: number) =>
    [...shown, ...(rest > 0 ? [findingTexts.more(rest)] : [])].join(', ')
  const names = list(others, left)
  const number = (key: string) => Number(evidence[key] ?? 0)
  const texts = findingTexts.rules
  const percent = (value: number) => `${decimal(value, 0)} %`
  const text = (): string => {
    switch (rule) {
      case 'one_way':
        return texts.one_way(a, b, decibels(number('snr')))
      case 'depends':
        return texts.depends(a, findingTexts.nodes(number('lost')), list(others, number('lost') - others.length))
      case 'routers':
        return texts.routers(a, b, decibels(number('snr')))
      case 'chatty':
        return texts.chatty(a, percent(number('share') * 100), findingTexts.packets(number('packets')))
      case 'battery':
        return texts.battery(a, percent(number('level')), percent(number('perDay')), findingTexts.days(number('days')))
      case 'restarts':
        return texts.restarts(a, findingTexts.times(number('restarts')))
      case 'clock':
        return texts.clock(a, duration(Math.abs(number('ahead')) / SECOND_MS))
      case 'key':
        return evidence['shared'] === true ? texts.sharedKey(a, names) : texts.weakKey(a)
      case 'hops':
        return texts.hops(a, findingTexts.hops(number('limit')), findingTexts.hops(number('needed')))
      case 'busy':
        return texts.busy(a, percent(number('use')))
      case 'only_gateway':
        return texts.only_gateway(a, list(others, number('lost') - others.length))
      case 'region_silent':
        return texts.region_silent(list(marks.slice(0, NAMED), nodes.length - NAMED), dateMinutes(number('at')))
      case 'firmware':
        return texts.firmware(a, String(evidence['version'] ?? ''))
      case 'precise': {
        const channel = String(evidence['channel'] ?? '')
        const area = number('metres') === 0 ? findingTexts.exactly : findingTexts.within(distance(number('metres')))
        return isLikely ? texts.precise(a, area, channel) : texts.seemsPrecise(a, area, channel)
      }
    }
  }
  return linkNames(text(), nodes)
}
