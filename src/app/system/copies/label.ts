/** Under which the settings of a place are sealed. */
export const placeLabel = (name: string) => `copy-place:${name}`
