import { effect } from '@preact/signals'
import { createSheet, type Frame, type Place } from '../../../parts/map/sheet.ts'
import { enlargement } from '../../../parts/map/occupied.ts'
import { liveState } from '../../../state/live.ts'
import type { MapParts } from '../view.ts'
import type { HeardNode } from './heard.ts'

export type Pulses = {
  add(heard: HeardNode): void
  clear(): void
  stop(): void
}

/** Of a ring that grows, and of the dot that runs to the receiver. */
const LASTS_MS = 1600
const RUNS_MS = 900
/** Without motion, a quiet mark stays for so long, and all are drawn anew at most this often. */
const MARKED_MS = 3000
const STILL_MS = 500
/** More at once would hide the map, and cost too much: the oldest go first. */
export const MAX_PULSES = 80
/** What happened while nobody looked comes all at once, and is not shown. */
const CATCH_UP_MS = 1500

type Pulse = HeardNode & { readonly at: number }

/** Shows packets as they are heard: a ring around the sender, and a line to who heard it. */
export function createPulses({ map, dots, palette }: MapParts): Pulses {
  const motion = matchMedia('(prefers-reduced-motion: reduce)')
  let pulses: readonly Pulse[] = []
  let frame = 0
  let timer: ReturnType<typeof setTimeout> | undefined
  let quietUntil = 0
  let isSkipped = false
  const draw = (sheet: Frame) => {
    const now = performance.now()
    const isStill = motion.matches
    const lasts = isStill ? MARKED_MS : LASTS_MS
    pulses = pulses.filter(({ at }) => now - at < lasts)
    for (const pulse of pulses) drawPulse(sheet, pulse, (now - pulse.at) / (isStill ? 0 : LASTS_MS))
  }
  const sheet = createSheet(map, { pane: 'live', zIndex: 399 }, draw)
  const drawPulse = ({ pen, x, y }: Frame, { nodeNum, receivers, at }: Pulse, part: number) => {
    const from = dots.drawnAt(nodeNum)
    if (from === undefined) return
    const times = enlargement()
    const isStill = !Number.isFinite(part)
    pen.strokeStyle = pen.fillStyle = palette()('--accent')
    pen.globalAlpha = isStill ? 0.8 : 1 - part
    pen.lineWidth = 2 * times
    for (const { nodeNum: receiver, isDirect } of receivers) {
      const to = dots.drawnAt(receiver)
      if (to === undefined || (to.x === from.x && to.y === from.y)) continue
      pen.setLineDash(isDirect ? [] : [6 * times, 5 * times])
      pen.beginPath()
      pen.moveTo(x(from), y(from))
      pen.lineTo(x(to), y(to))
      pen.stroke()
      const run = (performance.now() - at) / RUNS_MS
      if (!isStill && run < 1) disc(pen, between(x, from, to, run), between(y, from, to, run), 4 * times)
    }
    pen.setLineDash([])
    pen.beginPath()
    pen.arc(x(from), y(from), (isStill ? 14 : 9 + 18 * part) * times, 0, 2 * Math.PI)
    pen.stroke()
    pen.globalAlpha = 1
  }
  const work = () => {
    frame = 0
    // Every other frame is enough.
    isSkipped = !isSkipped
    if (!isSkipped) sheet.redraw()
    if (pulses.length > 0) frame = requestAnimationFrame(work)
  }
  const tick = () => {
    timer = undefined
    sheet.redraw()
    if (pulses.length > 0) timer = setTimeout(tick, STILL_MS)
  }
  const begin = () => {
    if (motion.matches) timer ??= setTimeout(tick, 0)
    else if (frame === 0) frame = requestAnimationFrame(work)
  }
  const clear = () => {
    cancelAnimationFrame(frame)
    clearTimeout(timer)
    frame = 0
    timer = undefined
    pulses = []
    sheet.redraw()
  }
  const look = () => {
    if (document.visibilityState === 'hidden') clear()
  }
  document.addEventListener('visibilitychange', look)
  const stopWaiting = effect(() => {
    if (liveState.value === 'live') quietUntil = performance.now() + CATCH_UP_MS
  })
  return {
    add(heard) {
      const at = performance.now()
      if (document.visibilityState === 'hidden' || liveState.peek() !== 'live' || at < quietUntil) return
      if (dots.drawnAt(heard.nodeNum) === undefined) return
      const others = pulses.filter(({ nodeNum }) => nodeNum !== heard.nodeNum)
      pulses = [...others.slice(1 - MAX_PULSES), { ...heard, at }]
      begin()
    },
    clear,
    stop() {
      stopWaiting()
      document.removeEventListener('visibilitychange', look)
      cancelAnimationFrame(frame)
      clearTimeout(timer)
      pulses = []
    },
  }
}

const between = (axis: (place: Place) => number, from: Place, to: Place, part: number) =>
  axis(from) + (axis(to) - axis(from)) * part

function disc(pen: CanvasRenderingContext2D, x: number, y: number, radius: number): void {
  pen.beginPath()
  pen.arc(x, y, radius, 0, 2 * Math.PI)
  pen.fill()
}
