import { api, ask } from '../../api.ts'
import { Card } from '../../parts/page.tsx'
import { href } from '../../router.ts'
import { useLoad } from '../../state/load.ts'
import { findingTexts } from '../../strings/mesh/findings.ts'
import { t } from '../../strings.ts'
import { sentence } from '../findings/sentence.tsx'

const POLL_MS = 5 * 60_000
const SHOWN = 3

/** The latest of what is wrong in the mesh, the likely first; nothing if nothing is. */
export function FindingsCard() {
  const { data } = useLoad(() => ask(api.findings.$get()), [], POLL_MS)
  const told = (data.value?.findings ?? []).filter(({ isMuted }) => !isMuted)
  if (told.length === 0) return null
  const first = told.toSorted((a, b) => Number(b.isLikely) - Number(a.isLikely)).slice(0, SHOWN)
  return (
    <Card
      title={t.nav.findings}
      actions={
        <a class="button small" href={href('/findings')}>
          {findingTexts.all} ({told.length})
        </a>
      }
    >
      <ul class="rows tight">
        {first.map((finding) => (
          <li key={`${finding.rule} ${finding.subject}`}>
            <span class="grow break">{sentence(finding)}</span>
            {!finding.isLikely && <span class="tag">{findingTexts.possible}</span>}
          </li>
        ))}
      </ul>
    </Card>
  )
}
