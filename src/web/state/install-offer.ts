import { signal } from '@preact/signals'

/** What a browser at a desk or on Android says when these pages can be installed. */
export type Offer = Event & { prompt(): Promise<unknown> }

const isOffer = (event: Event): event is Offer => 'prompt' in event

export const offer = signal<Offer | null>(null)

/** Keeps the browser's offer for the hint, whose code comes later: it is made once, soon after the page has loaded. */
export function watchInstall(): void {
  addEventListener('beforeinstallprompt', (event) => {
    event.preventDefault()
    if (isOffer(event)) offer.value = event
  })
  addEventListener('appinstalled', () => (offer.value = null))
}
