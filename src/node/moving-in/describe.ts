import type { ImportReport } from '../../app/system/moving-in/report.ts'
import { IMPORTED, LOSSES, USER_OUTCOMES } from '../../shared/moving-in.ts'

const SHOWN_NAMES = 8

/** The report as text for a terminal. */
export function describeReport(report: ImportReport): string {
  const { counts, losses, users, auditFile, isDryRun } = report
  const lines = [
    `${report.file}: MeshMonitor, up to migration ${report.migration}${isDryRun ? ' – dry run, nothing was written' : ''}`,
    '',
    ...counts.map(({ what, found, added }) => {
      const result = isDryRun ? '' : `, ${added.toLocaleString('en')} added`
      return `  ${IMPORTED[what].padEnd(14)} ${found.toLocaleString('en').padStart(12)} found${result}`
    }),
    ...(isDryRun ? [] : ['  Found and not added: it is here already, or two sources have it.']),
    '',
    ...(losses.length === 0 ? [] : ['Left out, or not as it was:']),
    ...losses.map(({ what, n, names }) => `  ${n.toLocaleString('en')} ${LOSSES[what]}${named(names)}`),
    '',
    'Users, with their rights there and here:',
    ...users.flatMap(({ username, outcome, before, after }) => [
      `  ${username}: ${USER_OUTCOMES[outcome]}`,
      ...before.map((line) => `    there  ${line}`),
      ...(outcome === 'added' || outcome === 'proposal' ? [`    here   ${after.join(', ') || 'nothing'}`] : []),
    ]),
    ...(auditFile === null
      ? []
      : [
          '',
          `Audit log: ${auditFile.entries} entries in ${auditFile.name} beside the backups, SHA-256 ${auditFile.sha256}`,
        ]),
  ]
  return lines.map((line) => `${line}\n`).join('')
}

function named(names: readonly string[]): string {
  if (names.length === 0) return ''
  const more = names.length > SHOWN_NAMES ? ', …' : ''
  return ` (${names.slice(0, SHOWN_NAMES).join(', ')}${more})`
}
