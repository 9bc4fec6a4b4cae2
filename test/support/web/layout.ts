import type { Page } from 'playwright-core'
import { z } from 'zod'

/** The name of the application, keys, ids, code, what the audit log holds, and days, whose words are those of `Intl`. */
const NOT_WORDS = '.brand, kbd, code, .mono, time, .exact, .day, .changes'

/** Boxes with a part that may reach past them: a list below its field, and one that is swiped over the whole width. */
const REACHING = '.node-picker, .chat'

const SCRIPT = `(() => {
  const shown = (each) => each.checkVisibility({ visibilityProperty: true, opacityProperty: true }) && each.closest('.leaflet-container, .skip') === null
  const root = [...document.querySelectorAll('dialog[open]')].at(-1) ?? document.body
  const all = [...root.querySelectorAll('*')].filter((each) => shown(each) && !(each instanceof SVGElement))
  const nameOf = (each) => each.tagName.toLowerCase() + [...each.classList].map((name) => '.' + name).join('')
  const whereIs = (each) => [each.parentElement?.parentElement, each.parentElement, each].filter(Boolean).map(nameOf).join(' ')
  const isOut = (each) => each.closest('.sr-only') !== null
  const textOf = (each) => (each.textContent || each.ariaLabel || each.placeholder || each.value || '').trim().slice(0, 50)

  const options = all.flatMap((each) => [...(each.options ?? [])])
  const texts = [...all, ...options].flatMap((each) => {
    if (each.closest('NOT_WORDS') !== null) return []
    const own = [...each.childNodes].filter(({ nodeType }) => nodeType === 3).map(({ data }) => data)
    return [...own, each.title, each.ariaLabel, each.placeholder].filter(Boolean)
  })

  const isInline = (each) => /^(?:inline|contents)$/.test(getComputedStyle(each).display)
  const clipped = all.flatMap((each) => {
    if (isInline(each) || isOut(each) || each.matches('select, textarea, option, input, REACHING')) return []
    const { overflowX, overflowY, textOverflow, webkitLineClamp } = getComputedStyle(each)
    const isWide = each.scrollWidth > each.clientWidth + 1 && !/auto|scroll/.test(overflowX)
    const isHigh = each.scrollHeight > each.clientHeight + 1 && /hidden|clip/.test(overflowY) && webkitLineClamp === 'none'
    if (!isWide && !isHigh) return []
    if (isWide && textOverflow === 'ellipsis') return each.closest('[title]') !== null || each.querySelector('[title]') !== null ? [] : ['no title: ' + whereIs(each) + ': ' + textOf(each)]
    return [(isWide ? 'too wide: ' : 'too high: ') + whereIs(each) + ': ' + textOf(each)]
  })

  const scroller = (each) => { for (let at = each.parentElement; at !== null; at = at.parentElement) if (/auto|scroll/.test(getComputedStyle(at).overflow)) return at; return null }
  const isLifted = (each) => { for (let at = each; at !== null && at !== root; at = at.parentElement) if (/absolute|fixed|sticky/.test(getComputedStyle(at).position)) return true; return false }
  const seen = (each) => {
    let { left, right, top, bottom } = each.getBoundingClientRect()
    for (let at = each.parentElement; at !== null; at = at.parentElement) {
      if (!/hidden|clip/.test(getComputedStyle(at).overflow)) continue
      const box = at.getBoundingClientRect()
      left = Math.max(left, box.left), right = Math.min(right, box.right), top = Math.max(top, box.top), bottom = Math.min(bottom, box.bottom)
    }
    return { left, right, top, bottom }
  }
  const controls = all.filter((each) => each.matches('a, button, input, select, textarea, summary') && !isOut(each) && !isLifted(each)).map((each) => ({ each, box: seen(each), within: scroller(each) }))
  const overlaps = controls.flatMap(({ each, box, within }, index) => controls.slice(index + 1).flatMap((other) => {
    if (other.within !== within || each.contains(other.each) || other.each.contains(each)) return []
    const width = Math.min(box.right, other.box.right) - Math.max(box.left, other.box.left)
    const height = Math.min(box.bottom, other.box.bottom) - Math.max(box.top, other.box.top)
    return width > 2 && height > 2 ? ['overlap: ' + whereIs(each) + ': ' + textOf(each) + ' / ' + nameOf(other.each) + ': ' + textOf(other.each)] : []
  }))
  const beyond = document.documentElement.scrollWidth - document.documentElement.clientWidth
  // Its parts scroll, never the document.
  const below = document.documentElement.scrollHeight - document.documentElement.clientHeight
  const faults = [...clipped, ...overlaps, ...(beyond > 0 ? ['page too wide by ' + beyond] : []), ...(below > 0 ? ['page too high by ' + below] : [])]
  return { faults: [...new Set(faults)], texts: [...new Set(texts)] }
})()`

const looked = z.object({ faults: z.array(z.string()), texts: z.array(z.string()) })

/**
 * Looks at the open page, or at the dialog over it. Faults: what is cut off without a tooltip or reaches out of its box,
 * controls that overlap, a page wider or higher than the screen. Texts: what is shown or read out.
 */
export async function lookAt(page: Page): Promise<z.infer<typeof looked>> {
  const script = SCRIPT.replace('REACHING', REACHING).replace('NOT_WORDS', NOT_WORDS)
  return looked.parse(await page.evaluate(script))
}
