/** Units along the side of a piece, and how far its shapes reach beyond it, as in scripts/world.js. */
export const EXTENT = 4096
const BUFFER = 32

/** `from`: the zoom level from which it is named. `x`, `y`: units from the upper left corner of the piece. */
export type Town = {
  readonly x: number
  readonly y: number
  readonly from: number
  readonly isCapital: boolean
  readonly name: string
}
/** `code`: of ISO 3166. */
export type Country = Pick<Town, 'x' | 'y' | 'from'> & { readonly code: string }

export type Piece = {
  readonly z: number
  readonly column: number
  readonly row: number
  readonly land: Path2D
  readonly coast: Path2D
  readonly borders: Path2D
  /** The most important first. */
  readonly towns: readonly Town[]
  /** The largest first; only in the piece that is the whole world. */
  readonly countries: readonly Country[]
}

/** The edges at which shapes are cut: those of a piece, and, where the world ends, those of the world. */
const CUTS: ReadonlySet<number> = new Set([-BUFFER, 0, EXTENT, EXTENT + BUFFER])

/** Reads what `write` of scripts/world.js wrote. */
export function readPiece(bytes: Uint8Array, address: Pick<Piece, 'z' | 'column' | 'row'>): Piece {
  let at = 0
  let [x, y] = [0, 0]
  const read = () => {
    let value = 0
    for (let factor = 1; ; factor *= 128) {
      const byte = bytes[at++] ?? 0
      value += (byte & 127) * factor
      if (byte < 128) return value
    }
  }
  const readDifference = () => {
    const value = read()
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2
  }
  const move = () => {
    x += readDifference()
    y += readDifference()
  }
  const readText = () => {
    const length = read()
    at += length
    return new TextDecoder().decode(bytes.subarray(at - length, at))
  }
  const readList = <T>(readOne: () => T): T[] => Array.from({ length: read() }, readOne)
  const [land, coast, borders] = [new Path2D(), new Path2D(), new Path2D()]
  readList(() => {
    for (let rest = read(), isFirst = true, wasCut = true; rest > 0; rest--, isFirst = false) {
      const [fromX, fromY] = [x, y]
      move()
      if (isFirst) land.moveTo(x, y)
      else land.lineTo(x, y)
      const isCut = isFirst || (x === fromX && CUTS.has(x)) || (y === fromY && CUTS.has(y))
      if (!isCut && wasCut) coast.moveTo(fromX, fromY)
      if (!isCut) coast.lineTo(x, y)
      wasCut = isCut
    }
    land.closePath()
  })
  readList(() => {
    for (let rest = read(), isFirst = true; rest > 0; rest--, isFirst = false) {
      move()
      if (isFirst) borders.moveTo(x, y)
      else borders.lineTo(x, y)
    }
  })
  const towns = readList((): Town => {
    move()
    const mark = read()
    return { x, y, from: Math.floor(mark / 2), isCapital: mark % 2 === 1, name: readText() }
  })
  const countries = readList((): Country => {
    move()
    return { x, y, from: read(), code: readText() }
  })
  return { ...address, land, coast, borders, towns, countries }
}
