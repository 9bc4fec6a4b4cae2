import { lazyPage } from '../../../parts/list/lazy-page.tsx'

/** It comes after the map, which stands without it. */
export const Legend = lazyPage(async () => (await import('./legend.tsx')).Legend)
