import type { ReadTranslation, Translation } from '../app/words/words.ts'

/** One file for each language, loaded when somebody first reads it. */
export const readTranslation: ReadTranslation = async (language) => {
  const { texts }: { texts: Translation } = await import(`../app/words/languages/${language}.ts`)
  return texts
}
