const EXPLANATIONS: ReadonlyMap<string | number, string> = new Map<string | number, string>([
  ['ECONNREFUSED', 'the broker refuses connections'],
  ['ECONNRESET', 'the broker reset the connection'],
  ['ETIMEDOUT', 'the broker does not answer'],
  ['EHOSTUNREACH', 'the broker cannot be reached'],
  ['ENETUNREACH', 'the network cannot be reached'],
  ['ENOTFOUND', "the broker's host name is not known"],
  // Return codes of CONNACK: MQTT 3.1.1, table 3.1.
  [2, 'the broker refuses the client id'],
  [3, 'the broker is not available'],
  [4, 'the broker refuses the user name or password'],
  [5, 'the broker refuses the user name or password'],
])

/** Why a connection failed, for people; without what stood in the URL. */
export function explainMqttError(error: Error): string {
  const code = 'code' in error && (typeof error.code === 'string' || typeof error.code === 'number') ? error.code : null
  if (/keepalive timeout|connack timeout/i.test(error.message)) return 'the broker does not answer'
  return (code === null ? null : EXPLANATIONS.get(code)) ?? 'the connection to the broker failed'
}
