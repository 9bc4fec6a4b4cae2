import { useEffect } from 'preact/hooks'
import { api, ask } from '../../api.ts'
import { Failure } from '../../parts/notice.tsx'
import { useLoad } from '../../state/load.ts'
import { type KeyHealth, keyHealth } from '../../state/mesh/key-health.ts'
import { keyTexts } from '../../strings/mesh/keys.ts'

const POLL_MS = 60_000

/** Loads which keys are doubtful, for the filter by it, and says what that means. */
export function KeyHelp({ problem }: { problem: string }) {
  const { data, error, reload } = useLoad(() => ask<KeyHealth[]>(api.nodes.keys.$get()), [], POLL_MS)
  useEffect(() => {
    keyHealth.value = data.value === null ? null : new Map(data.value.map((each) => [each.nodeNum, each]))
  }, [data.value])
  const texts: Readonly<Record<string, string>> = keyTexts.help
  return (
    <>
      {(data.value?.length ?? 0) > 0 && <p class="notice measure">{texts[problem] ?? keyTexts.help.any}</p>}
      <Failure error={error.value} retry={() => void reload()} />
    </>
  )
}
