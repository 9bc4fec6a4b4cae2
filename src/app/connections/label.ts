/** Under which the settings of a connection are sealed. */
export const connectionLabel = (name: string) => `connection:${name}`
