type World = { readonly version: string; readonly pieces: ReadonlyMap<string, Uint8Array> }
export function makeWorld(): World
export function listPieces(world: World): Readonly<Record<string, string>>
