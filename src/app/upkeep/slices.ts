/** Awaited after each slice of some milliseconds; answers whether to go on. */
export type Pause = () => Promise<boolean>
