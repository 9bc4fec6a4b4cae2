/** Whether this browser supports passkeys, and the service allows them. */
export function canUsePasskeys(isPossible: boolean): boolean {
  return isPossible && typeof PublicKeyCredential === 'function'
}
