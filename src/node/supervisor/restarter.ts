/**
 * Whether something starts this process again when it ends itself with an error: systemd, which names the process that
 * it started (systemd.exec(5)), Kubernetes, or what started a container whose first process this is. Otherwise somebody
 * has to. INVOCATION_ID alone proves nothing: every terminal of a desktop under systemd has one.
 */
export function findRestarter(
  env: NodeJS.ProcessEnv,
  { pid, ppid }: Pick<NodeJS.Process, 'pid' | 'ppid'>,
): 'supervisor' | 'hand' {
  const { NOTIFY_SOCKET = '', SYSTEMD_EXEC_PID = '', KUBERNETES_SERVICE_HOST = '' } = env
  // The parent is an older Node that ran the service on a newer one.
  const isOfSystemd = NOTIFY_SOCKET !== '' || [String(pid), String(ppid)].includes(SYSTEMD_EXEC_PID)
  return isOfSystemd || KUBERNETES_SERVICE_HOST !== '' || pid === 1 ? 'supervisor' : 'hand'
}
