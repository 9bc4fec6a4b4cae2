import { computed, signal } from '@preact/signals'
import type { InferResponseType } from 'hono/client'
import { api, ask } from '../../../api.ts'
import { preference } from '../../../state/preferences.ts'

export type Overlay = InferResponseType<typeof api.map.overlays.$get, 200>['overlays'][number]

/** Those that this viewer may see; null: not loaded yet. */
export const overlays = signal<readonly Overlay[] | null>(null)

/** The ids of overlays that this user switched off. */
export const hiddenOverlays = preference<readonly number[]>('map-overlays', [], (found) =>
  Array.isArray(found) ? found.filter((id): id is number => Number.isSafeInteger(id)) : null,
)

export const shownOverlays = computed(() =>
  (overlays.value ?? []).filter(({ id }) => !hiddenOverlays.value.value.includes(id)),
)

/** Without an answer the map has no overlays. */
export async function refreshOverlays(): Promise<void> {
  try {
    overlays.value = (await ask(api.map.overlays.$get())).overlays
  } catch {
    // Whoever opens their list is told.
  }
}

export function switchOverlay(id: number, isOn: boolean): void {
  const known = overlays.peek() ?? []
  const others = hiddenOverlays.value.peek().filter((each) => each !== id && known.some((one) => one.id === each))
  hiddenOverlays.keep(isOn ? others : [...others, id])
}

/** The overlay that was asked for last, to be brought into sight. */
export const wantedOverlay = signal<number | null>(null)
