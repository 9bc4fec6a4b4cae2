/** `to` of a broadcast packet. */
export const BROADCAST = 0xffffffff

/** Text form of a node number (u32): `!` and eight hexadecimal digits, e.g. `!a0cb0001`. */
export function formatNodeId(nodeNum: number): string {
  return `!${(nodeNum >>> 0).toString(16).padStart(8, '0')}`
}

/** The node number (u32) of `!a0cb0001`, or null when the text is not of that form. */
export function parseNodeId(text: string): number | null {
  return /^![0-9a-f]{8}$/i.test(text) ? Number.parseInt(text.slice(1), 16) : null
}
