import type { InferResponseType } from 'hono/client'
import { api, ask, send } from '../../../api.ts'
import { useLoad } from '../../../state/load.ts'

export type Region = InferResponseType<typeof api.map.region.$get, 200>
/** West, south, east, north in degrees. */
export type Bounds = NonNullable<Region['bounds']>
export type Area = { readonly bounds: Bounds; readonly maxZoom: number }

const LOADING_MS = 2000

/** The detailed map on this machine, followed while it is downloaded. */
export function useRegion() {
  const { data, error, reload } = useLoad(() => ask(api.map.region.$get()), [])
  // The interval depends on the answer.
  useLoad(
    async () => {
      if (data.peek()?.state === 'loading') await reload()
    },
    [],
    data.value?.state === 'loading' ? LOADING_MS : undefined,
  )
  return { region: data.value, error: error.value, reload }
}

export async function startRegion({ bounds, maxZoom }: Area): Promise<void> {
  await ask(api.map.region.$post({ json: { bounds, maxZoom } }))
}

export async function endRegion(what: 'download' | 'map'): Promise<void> {
  await send(api.map.region.$delete({ query: { what } }))
}
