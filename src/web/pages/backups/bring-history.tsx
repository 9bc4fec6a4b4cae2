import type { InferResponseType } from 'hono/client'
import { api, ask } from '../../api.ts'
import { count } from '../../format.ts'
import { At } from '../../parts/age.tsx'
import { CopyText } from '../../parts/copy.tsx'
import { Failure } from '../../parts/notice.tsx'
import { Card } from '../../parts/page.tsx'
import { useLoad } from '../../state/load.ts'
import { movingInTexts } from '../../strings/system/moving-in.ts'

type Report = NonNullable<InferResponseType<typeof api.system.import.$get>['report']>

const COMMAND = 'node dist/node/cli.js import meshmonitor <meshmonitor.db> --dry-run'
/** Names shown of one loss. */
const NAMES = 8

export function useImportReport() {
  return useLoad(() => ask(api.system.import.$get()), [])
}

/** How to import, and the report of the latest import. */
export function BringHistory({ loaded }: { loaded: ReturnType<typeof useImportReport> }) {
  const report = loaded.data.value?.report ?? null
  return (
    <Card title={movingInTexts.title}>
      <p class="measure">{movingInTexts.intro}</p>
      <CopyText text={COMMAND} label={movingInTexts.command} />
      <p class="faint">{movingInTexts.meanwhile}</p>
      <Failure error={loaded.error.value} retry={loaded.reload} />
      {report !== null && <LastImport report={report} />}
    </Card>
  )
}

function LastImport({ report }: { report: Report }) {
  const { file, finishedAt, counts, losses, users, auditFile } = report
  return (
    <>
      <h3>{movingInTexts.last}</h3>
      <p>
        <At at={finishedAt} /> {movingInTexts.from(file)}
      </p>
      <div class="cards">
        <div class="stack">
          <div class="table-box">
            <table class="table imported">
              <thead>
                <tr>
                  <th scope="col">{movingInTexts.kind}</th>
                  <th scope="col">{movingInTexts.found}</th>
                  <th scope="col">{movingInTexts.added}</th>
                </tr>
              </thead>
              <tbody>
                {counts.map(({ what, found, added }) => (
                  <tr key={what}>
                    <th scope="row">{movingInTexts.imported[what]}</th>
                    <td>{count(found)}</td>
                    <td>{count(added)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          <p class="faint">{movingInTexts.addedHelp}</p>
        </div>
        <div class="stack">
          {losses.length > 0 && <Losses losses={losses} />}
          {users.length > 0 && <Users users={users} />}
          {auditFile !== null && (
            <>
              <p>{movingInTexts.auditFile(auditFile.name)}</p>
              <CopyText text={auditFile.sha256} label={movingInTexts.sha256} />
            </>
          )}
        </div>
      </div>
    </>
  )
}

function Losses({ losses }: Pick<Report, 'losses'>) {
  return (
    <details>
      <summary>{movingInTexts.leftOut}</summary>
      <ul class="consequences">
        {losses.map(({ what, n, names }) => (
          <li key={what}>
            <span class="tag">{count(n)}</span> {movingInTexts.losses[what]}
            {names.length > 0 && (
              <div class="faint">
                {names.slice(0, NAMES).join(', ')}
                {names.length > NAMES && ` ${movingInTexts.more(count(names.length - NAMES))}`}
              </div>
            )}
          </li>
        ))}
      </ul>
    </details>
  )
}

function Users({ users }: Pick<Report, 'users'>) {
  return (
    <details>
      <summary>{movingInTexts.users}</summary>
      <ul class="consequences">
        {users.map(({ username, outcome, before, after }) => (
          <li key={username}>
            <strong>{username}</strong> {movingInTexts.outcomes[outcome]}
            {before.map((line) => (
              <div class="faint" key={line}>
                {movingInTexts.there}: {line}
              </div>
            ))}
            {(outcome === 'added' || outcome === 'proposal') && (
              <div>
                {movingInTexts.here}: {after.join(', ') || movingInTexts.nothing}
              </div>
            )}
          </li>
        ))}
      </ul>
    </details>
  )
}
