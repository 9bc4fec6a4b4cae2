import { expect, test } from 'vitest'
import { findRestarter } from '../../../src/node/supervisor/restarter.ts'

const PROCESS = { pid: 500, ppid: 400 }

test.each([
  ['a terminal of a desktop under systemd', { INVOCATION_ID: 'x', SYSTEMD_EXEC_PID: '300' }, PROCESS, 'hand'],
  ['nothing', {}, PROCESS, 'hand'],
  ['a unit that waits for messages', { NOTIFY_SOCKET: '/run/notify' }, PROCESS, 'supervisor'],
  ['another unit', { SYSTEMD_EXEC_PID: '500' }, PROCESS, 'supervisor'],
  ['a unit whose Node is too old', { SYSTEMD_EXEC_PID: '400' }, PROCESS, 'supervisor'],
  ['Kubernetes', { KUBERNETES_SERVICE_HOST: '10.0.0.1' }, PROCESS, 'supervisor'],
  ['a container', {}, { pid: 1, ppid: 0 }, 'supervisor'],
])('started by %s', (_, env, process, by) => {
  expect(findRestarter(env, process)).toBe(by)
})
