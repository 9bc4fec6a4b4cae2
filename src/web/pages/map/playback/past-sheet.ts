import type { Map as LeafletMap } from 'leaflet'
import { createSheet, type Frame } from '../../../parts/map/sheet.ts'
import { type Copies, type Difference, differenceOf } from './copies.ts'
import { stillCanvases } from './still.ts'
import { createSurface } from './surface.ts'

/** What is shown: lines and resting nodes, which are kept, and what moves above them. */
export type Shows = {
  lines(frame: Frame): void
  resting(frame: Frame): Copies
  moving(frame: Frame): Copies
}

/** One for each map. A browser without graphics hardware copies each canvas for each picture: there are no others. */
export type PastSheet = {
  /** Shows this instead of the present; null: the present again. */
  show(shows: Shows | null): void
  /** All copies that are drawn. */
  drawn(): { readonly resting: Copies; readonly moving: Copies }
  redraw(): void
  /** Draws what is different, and what is kept only if it is old. Returns how far things moved. */
  refresh(isGroundOld: boolean): Difference
}

const [LINES, DOTS] = ['past-lines', 'past-dots'] as const
/** How far they reach beyond the map's box, in parts of its size. */
const PADDING = 0.1
/** Empty meanwhile. */
const PRESENT = ['ground', 'dots'] as const
const NOTHING = { resting: [], moving: [] }

const known = new WeakMap<LeafletMap, PastSheet>()

export function pastSheetOf(map: LeafletMap): PastSheet {
  const made = known.get(map) ?? createPastSheet(map)
  known.set(map, made)
  return made
}

function createPastSheet(map: LeafletMap): PastSheet {
  const surface = createSurface()
  let shows: Shows | null = null
  let last: Frame | null = null
  let drawn: ReturnType<PastSheet['drawn']> = NOTHING
  let thaw = () => {}
  const lines = createSheet(map, { pane: LINES, zIndex: 400, padding: PADDING }, (frame) => shows?.lines(frame))
  const rest = (frame: Frame, { resting }: Shows) => {
    drawn = { resting: resting(frame), moving: drawn.moving }
    surface.ground(frame.pen, drawn.resting)
  }
  const dots = createSheet(map, { pane: DOTS, zIndex: 401, padding: PADDING }, (frame) => {
    last = frame
    if (shows === null) return
    rest(frame, shows)
    drawn = { resting: drawn.resting, moving: shows.moving(frame) }
    surface.paint(frame.pen, drawn.moving, true)
  })
  const redraw = () => {
    lines.redraw()
    dots.redraw()
  }
  return {
    show(next) {
      shows = next
      drawn = NOTHING
      for (const pane of PRESENT) hide(map, pane, next !== null)
      thaw()
      for (const sheet of [lines, dots]) sheet.show(next !== null)
      thaw = next === null ? () => {} : stillCanvases(map, [LINES, DOTS])
      if (next !== null) return redraw()
      last = null
      surface.drop()
    },
    drawn: () => drawn,
    redraw,
    refresh(isGroundOld) {
      if (last === null || shows === null) return { isAny: false, pixels: 0 }
      if (isGroundOld) {
        lines.redraw()
        rest(last, shows)
      }
      const moving = shows.moving(last)
      const difference = differenceOf(drawn.moving, moving)
      drawn = { resting: drawn.resting, moving }
      if (isGroundOld || difference.isAny) surface.paint(last.pen, moving, isGroundOld)
      return difference
    },
  }
}

function hide(map: LeafletMap, pane: string, isHidden: boolean): void {
  const box = map.getPane(pane)
  if (box !== undefined) box.hidden = isHidden
}
