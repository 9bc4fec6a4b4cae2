import type { ReadTranslation, Translation } from '../app/words/words.ts'

/** The languages are files of the build, because the worker has no room for all of them. */
export function assetTranslations(assets: Fetcher): ReadTranslation {
  const known = new Map<string, Translation>()
  return async (language) => {
    const read = known.get(language) ?? (await readFile(assets, language))
    known.set(language, read)
    return read
  }
}

async function readFile(assets: Fetcher, language: string): Promise<Translation> {
  const answer = await assets.fetch(`https://files.invalid/api/languages/${language}.json`)
  if (!answer.ok) throw new Error(`the file api/languages/${language}.json of the build is missing`)
  // Safe, because the build wrote the file from the same type.
  return answer.json<Translation>()
}
