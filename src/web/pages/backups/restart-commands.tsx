import { CopyText } from '../../parts/copy.tsx'
import { restoreTexts } from '../../strings/system/restore.ts'

const COMMANDS = [
  [restoreTexts.system, 'sudo systemctl restart mesh-monitoring-service'],
  [restoreTexts.docker, 'docker compose restart mesh'],
  [restoreTexts.npm, 'npm start'],
] as const

/** How somebody restarts the service, wherever it runs. */
export function RestartCommands() {
  return (
    <div class="stack">
      {COMMANDS.map(([where, text]) => (
        <div key={where}>
          <div class="faint">{where}</div>
          <CopyText text={text} label={where} />
        </div>
      ))}
    </div>
  )
}
