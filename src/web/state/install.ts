import { computed } from '@preact/signals'
import { isRecord, ownName, seeingAs } from '../api.ts'
import { offer } from './install-offer.ts'
import { preference } from './preferences.ts'
import { isAnonymous, user } from './session.ts'

/** An iPhone or iPad, which installs pages by its menu alone. */
const isIos =
  /iP(?:ad|hone|od)/.test(navigator.userAgent) || (/Mac/.test(navigator.platform) && navigator.maxTouchPoints > 1)

const isInstalled = () =>
  matchMedia('(display-mode: standalone)').matches || ('standalone' in navigator && navigator.standalone === true)

type Kept = { readonly visits: number; readonly isDone: boolean }

const kept = preference<Kept>('install-hint', { visits: 0, isDone: false }, (found) =>
  isRecord(found) && typeof found['visits'] === 'number' && typeof found['isDone'] === 'boolean'
    ? { visits: found['visits'], isDone: found['isDone'] }
    : null,
)

const THIS_VISIT = ownName('visit')
const MIN_VISITS = 2

/** Counts the visits of a user on this device: whoever comes for the first time has other things to do. */
export function countVisit(): void {
  const id = user.peek()?.id
  if (id === undefined || seeingAs !== null || kept.value.peek().visits >= MIN_VISITS) return
  try {
    if (sessionStorage.getItem(THIS_VISIT) === String(id)) return
    sessionStorage.setItem(THIS_VISIT, String(id))
  } catch {
    // Storage is blocked: nothing would remember the answer either.
    return
  }
  kept.keep({ ...kept.value.peek(), visits: kept.value.peek().visits + 1 })
}

/** How these pages can be installed, if that is to be said; null: it is not. */
export const installHint = computed((): 'offer' | 'ios' | null => {
  const { visits, isDone } = kept.value.value
  if (isAnonymous.value || seeingAs !== null || isDone || visits < MIN_VISITS || isInstalled()) return null
  if (offer.value !== null) return 'offer'
  return isIos ? 'ios' : null
})

/** The hint has been answered, and does not come again. */
export function endInstallHint(): void {
  kept.keep({ ...kept.value.peek(), isDone: true })
}

/** Asks the browser, which asks the user. An offer can be used once. */
export async function install(): Promise<void> {
  const made = offer.peek()
  endInstallHint()
  offer.value = null
  await made?.prompt()
}
