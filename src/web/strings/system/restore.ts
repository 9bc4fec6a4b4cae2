import { catalog } from '../../language.ts'
import { quantity } from '../quantity.ts'

export const restoreTexts = catalog('restoreTexts', {
  restore: 'Restore…',
  restoreOf: (name: string) => `Restore ${name}`,
  title: (name: string) => `Restore the backup ${name}`,
  lost: (since: string) => `Lost: everything since ${since}`,
  lostCounts: (messages: number, nodes: number, users: number, changes: number) =>
    `${quantity(messages, 'message', 'messages')}, ${quantity(nodes, 'new node', 'new nodes')}, ${quantity(users, 'new user', 'new users')} and ${quantity(changes, 'change', 'changes')} by users. Positions and measurements since then are lost, too.`,
  kept: 'The audit log keeps its newer entries. The replaced database stays beside the new one as mesh.db.before-restore, until the next restore.',
  brings: (at: string, version: string) => `Comes back: the state of ${at}, by version ${version}`,
  bringsCounts: (users: number, nodes: number, messages: number) =>
    `${quantity(users, 'user', 'users')}, ${quantity(nodes, 'node', 'nodes')} and ${quantity(messages, 'message', 'messages')}.`,
  accounts:
    'Accounts, passwords, permissions and API tokens are those of that day: somebody who was deactivated since is active again. Afterwards each page lists such access, so that you can revoke it again.',
  sessions: 'All sessions end. Everybody signs in again, you too, with the password of that day.',
  away: 'The service restarts and does not answer meanwhile: a few seconds, or minutes for a large backup.',
  byHand: 'Nothing starts this service again by itself. The restore is prepared, and happens when you restart it.',
  instances: (n: number) =>
    `${quantity(n, 'process uses', 'processes use')} this database. The restore is prepared, and happens when all of them have stopped and the first one starts.`,
  confirm: 'Restore and restart',
  prepare: 'Prepare the restore',
  working: 'Verifying the backup…',
  stagedTitle: (name: string) => `The next start restores ${name}`,
  staged: (by: string) => `Prepared by ${by}. Restart the service to carry it out, or cancel it.`,
  system: 'With systemd',
  docker: 'With Docker Compose',
  npm: 'In a terminal: Ctrl+C, then',
  cancel: 'Cancel the restore',
  cancelled: 'Restore cancelled',
  failed: (name: string) => `${name} was not restored`,
  failedHelp: (by: string, why: string) => `Started by ${by}. The database is as it was. The reason: ${why}`,
  done: (name: string) => `${name} is restored`,
  doneHelp: (by: string) => `Started by ${by}. Data since that backup is gone, and all sessions have ended.`,
  seen: 'Dismiss',
  restarting: 'Restarting',
  restartingHelp: (name: string) =>
    `The service restores ${name} and starts again. Leave this page open: it says when the service is back.`,
  slow: 'This takes long. A large backup needs minutes. If nothing starts the service again, start it yourself:',
  back: 'The service is back',
  signedOut:
    'You are signed out, because a restore ends all sessions. Sign in with your password of that day. The page Backups then says how it went.',
  signIn: 'Sign in',
})
