/** How many bits of the coordinates the cells of a map of coverage have: about 2700 km to 180 m wide at the equator. */
export const COVERAGE_BITS = { min: 4, max: 18 } as const

/** Cells in one answer; more are put together into larger ones. */
export const MAX_CELLS = 2000
