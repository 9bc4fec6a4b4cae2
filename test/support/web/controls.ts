import type { Page } from 'playwright-core'
import { z } from 'zod'

const SMALL = `[...document.querySelectorAll('button, select, summary, input:not([type=checkbox], [type=radio]), a.button, a.tab, .segments span, label.check, .checks label, label.switch, label.box, a.up, a.section-link, a.conversation')]
  .filter((each) => each.checkVisibility({ visibilityProperty: true, opacityProperty: true }) && !each.closest('.sr-only, .skip'))
  .map((each) => ({ name: (each.textContent || each.ariaLabel || each.placeholder || each.type || each.className).trim().slice(0, 40), height: each.getBoundingClientRect().height }))
  .filter(({ height }) => height > 0 && height < 43.5).map(({ name, height }) => name + ' ' + height)`

/** The visible controls of the open page that are not high enough for a finger. */
export async function smallControls(page: Page): Promise<string[]> {
  return z.array(z.string()).parse(await page.evaluate(SMALL))
}
