export function readServerTexts(): readonly string[]
