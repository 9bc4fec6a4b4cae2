export function readEnglish(): ReadonlyMap<string, string>
export function compareLanguage(tag: string): {
  readonly missing: readonly string[]
  readonly unknown: readonly string[]
  readonly changed: readonly (readonly [path: string, english: string])[]
}
export function compareServer(tag: string): { readonly missing: readonly string[]; readonly unknown: readonly string[] }
