import type { Map as LeafletMap } from 'leaflet'
import type { Palette, Token } from '../../../parts/map/colour.ts'
import { createSheet, type Frame, type Sheet } from '../../../parts/map/sheet.ts'
import { SIGNAL_COLOURS, signalOf } from '../../../parts/mesh/snr.ts'
import type { Node } from '../../../state/mesh/nodes.ts'
import { RELAYS } from '../layers/nodes.ts'
import { moved } from './clock.ts'
import { drawWords } from './words.ts'
import type { History, NodeState, Part, Parts } from './history.ts'

/** Where the map draws, and in which colours. */
export type Stage = { readonly map: LeafletMap; readonly palette: () => Palette }

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

/** Pictures of one second: more cost more than they show. */
const FRAME_MS = 1000 / 30
/** For those who want no motion, and how often the lists are told the time. */
const STEP_MS = 1000
const REPORT_MS = 200
/** More lines than these are drawn once a second, not with each picture. */
const MANY_LINES = 400
/** The nodes that stay where they are are drawn again after this time. */
const RESTING_MS = 400
/** Lines that a canvas draws efficiently in one path. */
const AT_ONCE = 40
/** How much of a line is left: a new one, an older one, one that ends. */
const ALPHAS = [0.9, 0.5, 0.22] as const
const HIT_PX = 14
/** Names are drawn beside this many nodes at most. */
const MAX_NAMES = 40

/** One pair of sheets for each map, which stays empty when nothing plays. */
type Sheets = {
  readonly current: { draw: Draws | null }
  readonly lines: Sheet
  /** Nodes that stay where they are for a while, those that move, and words. */
  readonly resting: Sheet
  readonly dots: Sheet
}
type Draws = { lines(frame: Frame): void; resting(frame: Frame): void; dots(frame: Frame): void }
const sheets = new WeakMap<LeafletMap, Sheets>()

function sheetsOf(map: LeafletMap): Sheets {
  const known = sheets.get(map)
  if (known !== undefined) return known
  const current: Sheets['current'] = { draw: null }
  const made = {
    current,
    lines: createSheet(map, { pane: 'past-lines', zIndex: 392 }, (frame) => current.draw?.lines(frame)),
    resting: createSheet(map, { pane: 'past-resting', zIndex: 401 }, (frame) => current.draw?.resting(frame)),
    dots: createSheet(map, { pane: 'past-dots', zIndex: 402 }, (frame) => current.draw?.dots(frame)),
  }
  sheets.set(map, made)
  return made
}

/** Draws a history at one moment after the other. */
export function createPlayer({ map, palette }: Stage, { onTime, onEnd }: Reports): Player {
  const isStill = matchMedia('(prefers-reduced-motion: reduce)').matches
  const sheet = sheetsOf(map)
  let history: History | null = null
  let at = 0
  let speed = 1
  let timer: number | null = null
  let [lastFrame, lastReport, lastLines, lastResting] = [0, 0, 0, 0]
  let lines = 0
  let parts: Parts = { resting: [], others: [] }
  let resting: readonly Drawn[] = []
  let moving: readonly Drawn[] = []
  const areFew = () => resting.length + moving.length <= MAX_NAMES
  const pictures = createPictures(palette)

  sheet.current.draw = {
    lines: (frame) => {
      lines = history === null ? 0 : drawPairs(frame, history, at, palette())
    },
    resting: (frame) => {
      resting = history === null ? [] : drawNodes(frame, { history, part: parts.resting, at }, pictures)
      if (areFew()) drawNames(frame, resting, palette())
    },
    dots: (frame) => {
      moving = history === null ? [] : drawNodes(frame, { history, part: parts.others, at }, pictures)
      if (history === null) return
      if (areFew()) drawNames(frame, moving, palette())
      drawWords(frame, history, at, speed, palette())
    },
  }
  /** `now`: what may wait is drawn when it is due; null: all of it. */
  const picture = (now: number | null) => {
    const time = now ?? performance.now()
    if (now === null || lines <= MANY_LINES || now - lastLines >= STEP_MS) {
      lastLines = time
      sheet.lines.redraw()
    }
    if (now === null || now - lastResting >= RESTING_MS) {
      lastResting = time
      // Until they are drawn again, and a little longer.
      parts = history?.part(at, at + 2 * RESTING_MS * speed) ?? { resting: [], others: [] }
      sheet.resting.redraw()
    }
    sheet.dots.redraw()
  }
  const report = () => {
    lastReport = performance.now()
    onTime(at)
  }
  const step = (passed: number, now: number) => {
    if (history === null) return
    const next = moved(at, { passed, speed, span: history.span })
    at = next.at
    picture(next.isOver || isStill ? null : now)
    if (next.isOver || now - lastReport >= REPORT_MS) report()
    if (next.isOver) {
      pause()
      onEnd()
    }
  }
  const frame = (now: number) => {
    timer = requestAnimationFrame(frame)
    // A page in the background gets no pictures: what passed meanwhile is not made up for.
    const passed = Math.min(now - lastFrame, 4 * FRAME_MS)
    if (now - lastFrame < FRAME_MS - 2) return
    lastFrame = now
    step(passed, now)
  }
  const pause = () => {
    if (timer !== null) (isStill ? clearInterval : cancelAnimationFrame)(timer)
    timer = null
  }
  return {
    show: (next) => {
      history = next
      picture(null)
    },
    seek: (to) => {
      at = to
      picture(null)
      report()
    },
    play: (next) => {
      speed = next
      if (timer !== null) return
      lastFrame = performance.now()
      timer = isStill
        ? window.setInterval(() => step(STEP_MS, performance.now()), STEP_MS)
        : requestAnimationFrame(frame)
    },
    pause,
    redraw: () => picture(null),
    nodeAt: (x, y) => {
      const { x: left, y: top } = map.containerPointToLayerPoint([x, y])
      const found = [...resting, ...moving].findLast((each) => Math.hypot(each.x - left, each.y - top) <= HIT_PX)
      return found?.node ?? null
    },
    stop: () => {
      pause()
      history = null
      sheet.current.draw = null
      for (const each of [sheet.lines, sheet.resting, sheet.dots]) each.redraw()
    },
  }
}

/** Draws the lines and returns how many there are. Those of one colour and age together. */
function drawPairs({ pen, x, y, touches }: Frame, history: History, at: number, colours: Palette): number {
  const groups = new Map<string, number[]>()
  let count = 0
  history.eachPair(at, (a, b, snr, age) => {
    const [x1, y1, x2, y2] = [x(a), y(a), x(b), y(b)]
    if (!touches(Math.min(x1, x2), Math.min(y1, y2), Math.max(x1, x2), Math.max(y1, y2), 4)) return
    count++
    const key = `${SIGNAL_COLOURS[signalOf(snr)]} ${Math.min(2, Math.floor(age * 3))}`
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [x1, y1, x2, y2])
    else group.push(x1, y1, x2, y2)
  })
  pen.lineWidth = 1.5
  for (const [token, alpha] of LINE_LOOKS) {
    const group = groups.get(`${token} ${alpha}`) ?? []
    pen.strokeStyle = colours(token)
    pen.globalAlpha = ALPHAS[alpha]
    for (let begin = 0; begin < group.length; begin += 4 * AT_ONCE) {
      pen.beginPath()
      for (let index = begin; index < Math.min(group.length, begin + 4 * AT_ONCE); index += 4) {
        pen.moveTo(group[index] ?? 0, group[index + 1] ?? 0)
        pen.lineTo(group[index + 2] ?? 0, group[index + 3] ?? 0)
      }
      pen.stroke()
    }
  }
  pen.globalAlpha = 1
  return count
}

/** The oldest at the bottom. */
const LINE_LOOKS = ([2, 1, 0] as const).flatMap((alpha) =>
  (['--faint', '--bad', '--warn', '--good'] as const).map((token) => [token, alpha] as const),
)

type Drawn = { readonly node: Node; readonly x: number; readonly y: number }

type Shown = { readonly history: History; readonly part: Part; readonly at: number }

function drawNodes({ pen, x, y, touches }: Frame, { history, part, at }: Shown, pictures: Pictures): readonly Drawn[] {
  const drawn: Drawn[] = []
  const pictureOf = pictures()
  history.eachNode(part, at, (node, spot, state) => {
    const [left, top] = [x(spot), y(spot)]
    if (!touches(left, top, left, top, SIZE)) return
    drawn.push({ node, x: left, y: top })
    pen.drawImage(
      pictureOf(state, node.isLocal, RELAYS.has(node.role ?? '')),
      left - SIZE / 2,
      top - SIZE / 2,
      SIZE,
      SIZE,
    )
  })
  return drawn
}

function drawNames({ pen }: Frame, drawn: readonly Drawn[], colours: Palette): void {
  pen.font = '600 12px system-ui, sans-serif'
  pen.textAlign = 'center'
  pen.textBaseline = 'top'
  pen.lineWidth = 3
  pen.lineJoin = 'round'
  pen.strokeStyle = colours('--surface')
  pen.fillStyle = colours('--text')
  for (const { node, x, y } of drawn) {
    const name = node.shortName ?? node.nodeId.slice(-4)
    pen.strokeText(name, x, y + 10)
    pen.fillText(name, x, y + 10)
  }
}

/** Pixels of a node's picture. */
const SIZE = 24
type Pictures = () => (state: NodeState, isLocal: boolean, isRelay: boolean) => HTMLCanvasElement

/** A small picture of each kind of node, drawn once for each scheme of colours: thousands are copied in each frame. */
function createPictures(palette: () => Palette): Pictures {
  let known = new Map<string, HTMLCanvasElement>()
  let colours: Palette | null = null
  return () => {
    if (colours !== palette()) known = new Map()
    const current = (colours = palette())
    return (state, isLocal, isRelay) => {
      const key = `${state} ${isLocal} ${isRelay}`
      const found = known.get(key) ?? drawPicture(current, state, isLocal, isRelay)
      known.set(key, found)
      return found
    }
  }
}

const STATE_TOKENS = { 0: '--age-0', 1: '--age-1', 2: '--age-2', silent: '--bad' } as const satisfies Record<
  NodeState,
  Token
>

function drawPicture(colours: Palette, state: NodeState, isLocal: boolean, isRelay: boolean): HTMLCanvasElement {
  const canvas = document.createElement('canvas')
  canvas.width = canvas.height = 2 * SIZE
  const pen = canvas.getContext('2d')
  if (pen === null) return canvas
  pen.scale(2, 2)
  const middle = SIZE / 2
  const radius = isRelay ? 8 : 6
  pen.beginPath()
  if (isLocal) {
    const reach = radius * 1.4
    for (const [x, y] of [
      [0, -reach],
      [reach, 0],
      [0, reach],
      [-reach, 0],
    ] as const) {
      pen.lineTo(middle + x, middle + y)
    }
    pen.closePath()
  } else pen.arc(middle, middle, radius, 0, 2 * Math.PI)
  // Not everybody sees colours: those that are not heard are hollow, and a silent one is crossed out.
  const isHollow = state === 2 || state === 'silent'
  const own = colours(STATE_TOKENS[state])
  pen.fillStyle = isHollow ? colours('--surface') : own
  pen.fill()
  pen.strokeStyle = isHollow ? own : colours('--surface')
  pen.lineWidth = 2
  pen.stroke()
  if (state !== 'silent') return canvas
  pen.beginPath()
  pen.moveTo(middle - 3, middle - 3)
  pen.lineTo(middle + 3, middle + 3)
  pen.moveTo(middle + 3, middle - 3)
  pen.lineTo(middle - 3, middle + 3)
  pen.stroke()
  return canvas
}
