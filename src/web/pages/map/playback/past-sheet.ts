import type { Map as LeafletMap } from 'leaflet'
import { createSheet, type Frame } from '../../../parts/map/sheet.ts'
import { type Copies, type Difference, differenceOf, draw } from './copies.ts'

/** What is on the sheet: the ground, which is kept, and what moves above it. */
export type Shows = {
  /** Draws it, and returns the nodes on it. */
  ground(frame: Frame): Copies
  moving(frame: Frame): Copies
}

/** One for each map. A browser without graphics hardware copies each canvas for each picture: there are no others. */
export type PastSheet = {
  /** Shows this instead of the present; null: the present again. */
  show(shows: Shows | null): void
  /** All copies that are drawn. */
  drawn(): { readonly ground: Copies; readonly moving: Copies }
  redraw(): void
  /** Draws what is different, and the ground only if it is old. Returns how far things moved. */
  refresh(isGroundOld: boolean): Difference
}

const PANE = 'past-dots'
/** Empty meanwhile. */
const PRESENT = ['ground', 'dots'] as const
const NOTHING = { ground: [], moving: [] }

const known = new WeakMap<LeafletMap, PastSheet>()

export function pastSheetOf(map: LeafletMap): PastSheet {
  const made = known.get(map) ?? createPastSheet(map)
  known.set(map, made)
  return made
}

function createPastSheet(map: LeafletMap): PastSheet {
  const kept = document.createElement('canvas')
  const keptPen = kept.getContext('2d')
  let shows: Shows | null = null
  let last: Frame | null = null
  let drawn: ReturnType<PastSheet['drawn']> = NOTHING
  const paintGround = (frame: Frame): Copies => {
    if (shows === null || keptPen === null) return []
    const { width, height } = frame.pen.canvas
    // Setting the size clears it.
    Object.assign(kept, { width, height })
    keptPen.setTransform(frame.pen.getTransform())
    return shows.ground({ ...frame, pen: keptPen })
  }
  const paint = ({ pen }: Frame, moving: Copies) => {
    // The map is hidden.
    if (kept.width === 0 || kept.height === 0) return
    pen.save()
    pen.resetTransform()
    pen.globalCompositeOperation = 'copy'
    pen.drawImage(kept, 0, 0)
    pen.restore()
    draw(pen, moving)
  }
  const sheet = createSheet(map, { pane: PANE, zIndex: 401, padding: 0.1 }, (frame) => {
    last = frame
    if (shows === null) return
    drawn = { ground: paintGround(frame), moving: shows.moving(frame) }
    paint(frame, drawn.moving)
  })
  return {
    show(next) {
      shows = next
      drawn = NOTHING
      for (const pane of PRESENT) hide(map, pane, next !== null)
      hide(map, PANE, next === null)
      sheet.redraw()
      if (next === null) kept.width = kept.height = 0
    },
    drawn: () => drawn,
    redraw: sheet.redraw,
    refresh(isGroundOld) {
      if (last === null || shows === null) return { isAny: false, pixels: 0 }
      const ground = isGroundOld ? paintGround(last) : drawn.ground
      const moving = shows.moving(last)
      const difference = differenceOf(drawn.moving, moving)
      if (isGroundOld || difference.isAny) {
        drawn = { ground, moving }
        paint(last, moving)
      }
      return difference
    },
  }
}

function hide(map: LeafletMap, pane: string, isHidden: boolean): void {
  const box = map.getPane(pane)
  if (box !== undefined) box.hidden = isHidden
}
