import { useEffect } from 'preact/hooks'
import { Icon } from '../parts/icon.tsx'
import { countVisit, endInstallHint, install, installHint } from '../state/install.ts'
import { installTexts } from '../strings/install.ts'

/** How to install these pages, at the lower edge of the screen, where it moves nothing. */
export function InstallHint() {
  useEffect(countVisit, [])
  const how = installHint.value
  if (how === null) return null
  return (
    <section class="install-hint" aria-label={installTexts.title}>
      <Icon name="download" />
      <div class="grow">
        <strong>{installTexts.title}</strong>
        <p>{how === 'ios' ? installTexts.ios : installTexts.help}</p>
      </div>
      {how === 'offer' && (
        <button type="button" class="button small primary" onClick={() => void install().catch(console.error)}>
          {installTexts.install}
        </button>
      )}
      <button type="button" class="button small" onClick={endInstallHint}>
        {how === 'ios' ? installTexts.gotIt : installTexts.later}
      </button>
    </section>
  )
}
