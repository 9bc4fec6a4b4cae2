import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

type Rgb = readonly [number, number, number]

const read = (path: string) => readFileSync(new URL(`../../../src/web/${path}`, import.meta.url), 'utf8')
const styles = read('styles/tokens.css') + read('pages/map/colouring/scales.css')

/** Light and dark, as linear shares of red, green and blue. */
function coloursOf(token: string): readonly [Rgb, Rgb] {
  const [, light, dark] = new RegExp(String.raw`--${token}: light-dark\((#\w{6}), (#\w{6})\)`).exec(styles) ?? []
  if (light === undefined || dark === undefined) throw new Error(`there is no colour ${token}`)
  return [linear(light), linear(dark)]
}

function linear(hex: string): Rgb {
  const part = (at: number) => {
    const share = Number.parseInt(hex.slice(at, at + 2), 16) / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  }
  return [part(1), part(3), part(5)]
}

const luminance = ([r, g, b]: Rgb) => 0.2126 * r + 0.7152 * g + 0.0722 * b

/** As WCAG defines it. */
function contrast(a: Rgb, b: Rgb): number {
  const [dim, bright] = [luminance(a), luminance(b)].toSorted((x, y) => x - y)
  return ((bright ?? 0) + 0.05) / ((dim ?? 0) + 0.05)
}

/** What people see who lack one kind of cones (Machado, Oliveira and Fernandes, 2009). */
const EYES: Readonly<Record<string, readonly [Rgb, Rgb, Rgb]>> = {
  all: [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  protanopia: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deuteranopia: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  tritanopia: [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
}

/** In CIELAB, where lengths are differences that people see. */
function seen([r, g, b]: Rgb, eye: readonly [Rgb, Rgb, Rgb]): readonly number[] {
  const [red, green, blue] = eye.map((row) => Math.min(1, Math.max(0, row[0] * r + row[1] * g + row[2] * b)))
  const [l, m, s] = [red ?? 0, green ?? 0, blue ?? 0]
  const root = (share: number) => (share > 0.008856 ? Math.cbrt(share) : 7.787 * share + 16 / 116)
  const x = root((0.4124 * l + 0.3576 * m + 0.1805 * s) / 0.95047)
  const y = root(0.2126 * l + 0.7152 * m + 0.0722 * s)
  const z = root((0.0193 * l + 0.1192 * m + 0.9505 * s) / 1.08883)
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)]
}

const SHADES = [0, 1, 2, 3, 4].map((shade) => coloursOf(`shade-${shade}`))

test.each([
  ['light', 0],
  ['dark', 1],
] as const)('the colours of a scale stay apart for every eye, and stand out against the map: %s', (_, scheme) => {
  const shades = SHADES.map((pair) => pair[scheme])
  for (const ground of ['surface', 'sunken']) {
    const behind = coloursOf(ground)[scheme]
    for (const shade of shades) expect(contrast(shade, behind), ground).toBeGreaterThanOrEqual(3)
  }
  for (const [name, eye] of Object.entries(EYES)) {
    const all = shades.map((shade) => seen(shade, eye))
    const apart = all.flatMap((a, index) =>
      all.slice(index + 1).map((b) => Math.hypot(...a.map((part, at) => part - (b[at] ?? 0)))),
    )
    expect(Math.min(...apart), name).toBeGreaterThan(25)
  }
})
