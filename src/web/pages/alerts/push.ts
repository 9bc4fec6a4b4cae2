import { api, ask } from '../../api.ts'
import { deviceName } from '../../parts/form/credential-rows.tsx'
import { startWorker } from '../../state/files.ts'
import { alertTexts } from '../../strings/alerts.ts'

/** Why this browser cannot receive alerts; null: it can. */
export function pushProblem(): string | null {
  if (!('serviceWorker' in navigator) || !('PushManager' in window)) return alertTexts.pushMissing
  return Notification.permission === 'denied' ? alertTexts.pushDenied : null
}

/** Subscribes this browser to alerts. Throws the refusal of the browser or the service. */
export async function subscribeBrowser(): Promise<void> {
  if ((await Notification.requestPermission()) !== 'granted') throw new Error(alertTexts.pushDenied)
  const registration = await startWorker().catch(() => {
    throw new Error(alertTexts.pushUnready)
  })
  const { publicKey } = await ask(api.alerts['push-key'].$get())
  const subscription = await registration.pushManager.subscribe({
    userVisibleOnly: true,
    applicationServerKey: publicKey,
  })
  const { endpoint = '', keys = {} } = subscription.toJSON()
  const settings = { endpoint, p256dh: keys['p256dh'] ?? '', auth: keys['auth'] ?? '' }
  await ask(
    api.alerts.destinations.$post({ json: { kind: 'web_push', name: deviceName(navigator.userAgent), settings } }),
  )
}
