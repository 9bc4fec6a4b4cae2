import { isLanguage, type Language, LANGUAGE_TAGS, LANGUAGES, matchLanguage } from '../../../shared/languages.ts'
import { changeLanguage, storedLanguage } from '../../language.ts'
import { t } from '../../strings.ts'

type Props = { readonly chosen: Language | null; choose(language: Language | null): void }

/** Each language by its own name, so that everybody finds theirs, whichever one the page is in. */
export function LanguageSelect({ chosen, choose }: Props) {
  return (
    <select
      aria-label={t.shell.language}
      value={chosen ?? ''}
      onChange={({ currentTarget: { value } }) => choose(isLanguage(value) ? value : null)}
    >
      <option value="">{t.shell.languageOfBrowser(LANGUAGES[matchLanguage(navigator.languages)])}</option>
      {LANGUAGE_TAGS.map((tag) => (
        <option key={tag} value={tag} lang={tag}>
          {LANGUAGES[tag]}
        </option>
      ))}
    </select>
  )
}

/** The language of this browser, for whoever has not signed in. */
export function BrowserLanguage() {
  const stored = storedLanguage()
  return <LanguageSelect chosen={stored !== null && isLanguage(stored) ? stored : null} choose={changeLanguage} />
}
