import type { Node } from '../../../state/mesh/nodes.ts'
import type { MapParts } from '../view.ts'
import { moved } from './clock.ts'
import { copiesOf, namesOf, wordsOf } from './copies.ts'
import type { History, Parts } from './history.ts'
import { drawLines, MANY_LINES } from './lines.ts'
import { pastSheetOf } from './past-sheet.ts'
import { createPictures } from './pictures.ts'

export type Player = {
  /** Shows another range. */
  show(history: History): void
  seek(at: number): void
  play(speed: number): void
  pause(): void
  redraw(): void
  /** The node that is drawn at a point of the map's box. */
  nodeAt(x: number, y: number): Node | null
  stop(): void
}

type Reports = {
  /** A few times a second while it plays, and after each jump. */
  onTime(at: number): void
  onEnd(): void
}

/** From one picture to the next: more of them cost more than they show. */
const FRAME_MS = 1000 / 30
/** While nothing moves as far as a pixel. */
const SLOW_MS = 200
/** How often the lists are told the time. */
const REPORT_MS = 400
/** For those who want no motion. */
const STEP_MS = 1000
/** Lines and resting nodes are drawn again after this time: many lines, those of nodes that move far, and others. */
const GROUND_MS = { many: 1000, quick: 100, few: 400 } as const
/** The browser calls back at the next picture of the screen. */
const SCREEN_MS = 17
const HIT_PX = 14
/** Names are drawn beside this many nodes at most. */
const MAX_NAMES = 40
const NOTHING: Parts = { resting: [], others: [] }

/** Draws a history at one moment after the other. */
export function createPlayer({ map, palette, onRecolour }: MapParts, { onTime, onEnd }: Reports): Player {
  const isStill = matchMedia('(prefers-reduced-motion: reduce)').matches
  const sheet = pastSheetOf(map)
  const pictures = createPictures(palette)
  let history: History | null = null
  let at = 0
  let speed = 1
  let timer: { stop(): void } | null = null
  let isZooming = false
  let [lastFrame, lastReport, lastGround] = [0, 0, 0]
  let lineCount = 0
  let parts = NOTHING
  /** Until something has moved by a pixel. */
  let wait = FRAME_MS

  sheet.show({
    lines: (frame) => {
      lastGround = performance.now()
      lineCount = history === null ? 0 : drawLines(frame, history, at, palette())
    },
    resting: (frame) => {
      if (history === null) return []
      // Those that stay where they are until they are drawn again, and a little longer.
      parts = history.part(at, at + 2 * GROUND_MS.many * speed)
      return copiesOf(frame, { history, part: parts.resting, at }, pictures(frame))
    },
    moving: (frame) => {
      if (history === null) return []
      const { resting } = sheet.drawn()
      const nodes = copiesOf(frame, { history, part: parts.others, at }, pictures(frame))
      const named = resting.length + nodes.length > MAX_NAMES ? [] : [...resting, ...nodes]
      return [...nodes, ...namesOf(named, pictures(frame)), ...wordsOf(frame, history, at, speed, pictures(frame))]
    },
  })
  const drawAll = () => {
    wait = FRAME_MS
    // The end of a zoom draws everything.
    if (!isZooming) sheet.redraw()
  }
  /** Draws what is due and looks different. */
  const picture = (passed: number) => {
    // The finished sheet is stretched meanwhile.
    if (isZooming) return
    const isQuick = wait < GROUND_MS.quick
    const groundMs = GROUND_MS[lineCount > MANY_LINES ? 'many' : isQuick ? 'quick' : 'few']
    const { pixels } = sheet.refresh(performance.now() - lastGround >= groundMs)
    wait = Math.max(FRAME_MS, Math.min(SLOW_MS, passed / pixels))
  }
  const report = () => {
    lastReport = performance.now()
    onTime(at)
  }
  const step = (passed: number) => {
    if (history === null) return
    const next = moved(at, { passed, speed, span: history.span })
    at = next.at
    if (next.isOver || isStill) drawAll()
    else picture(passed)
    if (next.isOver || performance.now() - lastReport >= REPORT_MS - SCREEN_MS) report()
    if (next.isOver) {
      pause()
      onEnd()
    }
  }
  const next = () => {
    const id = setTimeout(
      () => {
        const frame = requestAnimationFrame((now) => {
          // A page in the background gets no pictures: what passed meanwhile is not made up for.
          const passed = Math.max(0, Math.min(now - lastFrame, 2 * SLOW_MS))
          lastFrame = now
          step(passed)
          if (timer === own) next()
        })
        own.stop = () => cancelAnimationFrame(frame)
      },
      Math.max(0, wait - SCREEN_MS),
    )
    const own = { stop: () => clearTimeout(id) }
    timer = own
  }
  const pause = () => {
    timer?.stop()
    timer = null
  }
  const zoom = ({ type }: { type: string }) => {
    isZooming = type === 'zoomstart'
  }
  map.on('zoomstart zoomend', zoom)
  const forget = onRecolour(drawAll)
  return {
    show: (next) => {
      history = next
      drawAll()
    },
    seek: (to) => {
      at = to
      drawAll()
      report()
    },
    play: (times) => {
      speed = times
      wait = FRAME_MS
      lastGround = Number.NEGATIVE_INFINITY
      if (timer !== null) return
      lastFrame = performance.now()
      if (!isStill) return next()
      const id = setInterval(() => step(STEP_MS), STEP_MS)
      timer = { stop: () => clearInterval(id) }
    },
    pause,
    redraw: () => {
      if (timer === null || isStill) drawAll()
      // With the next picture.
      else lastGround = Number.NEGATIVE_INFINITY
    },
    nodeAt: (x, y) => {
      const { x: left, y: top } = map.containerPointToLayerPoint([x, y])
      const { resting, moving } = sheet.drawn()
      const nodes = [...resting, ...moving].flatMap(({ of }) => of ?? [])
      return nodes.findLast((each) => Math.hypot(each.x - left, each.y - top) <= HIT_PX)?.node ?? null
    },
    stop: () => {
      pause()
      forget()
      map.off('zoomstart zoomend', zoom)
      sheet.show(null)
    },
  }
}
