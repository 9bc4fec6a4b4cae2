import { createServer } from 'node:http'
import { exportJWK, generateKeyPair } from 'jose'
import { type ClientMetadata, type Configuration, Provider } from 'oidc-provider'

export type CertifiedProvider = {
  readonly issuer: string
  /** Settings of a service that is registered there. */
  readonly env: Record<string, string>
  close(): Promise<void>
}

/**
 * The certified `oidc-provider` on a free loopback port, with one client: `origin`. It uses its defaults except for the
 * given settings; `path` is the path of the issuer.
 */
export async function startCertifiedProvider(options: {
  origin: string
  secret: string
  method: 'client_secret_basic' | 'client_secret_post'
  alg: 'RS256' | 'PS256' | 'ES256' | 'EdDSA' | 'Ed25519'
  path?: string
  client?: Partial<ClientMetadata>
  configuration?: Configuration
}): Promise<CertifiedProvider> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const path = options.path ?? ''
  const issuer = `http://localhost:${Object(server.address()).port}${path}`
  const redirectUri = `${options.origin}/api/auth/oidc/callback`
  const { privateKey } = await generateKeyPair(options.alg, { extractable: true })
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: 'mesh',
        client_secret: options.secret,
        redirect_uris: [redirectUri],
        post_logout_redirect_uris: [`${options.origin}/login`],
        token_endpoint_auth_method: options.method,
        id_token_signed_response_alg: options.alg,
        ...options.client,
      },
    ],
    jwks: { keys: [{ ...(await exportJWK(privateKey)), alg: options.alg, use: 'sig' }] },
    cookies: { keys: ['a key of the test'] },
    // Sends logout tokens. Its own way of sending refuses the addresses of this machine.
    fetch: (input, { headers = {}, body = null } = {}) => fetch(input, { method: 'POST', headers, body }),
    ...options.configuration,
  })
  const handle = provider.callback()
  const mounted = path.replace(/\/$/, '')
  server.on('request', (request, response) => {
    if (request.url?.startsWith(`${mounted}/`) !== true) return response.writeHead(404).end()
    // As a framework does that mounts it below a path.
    Object.assign(request, { originalUrl: request.url, url: request.url.slice(mounted.length) })
    return void handle(request, response)
  })
  return {
    issuer,
    env: {
      OIDC_ENABLED: 'true',
      OIDC_ISSUER: issuer,
      OIDC_CLIENT_ID: 'mesh',
      OIDC_CLIENT_SECRET: options.secret,
      OIDC_REDIRECT_URI: redirectUri,
    },
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/**
 * Goes through the provider's own pages, as a browser without scripts would: signs in and consents, or signs out.
 * Returns where it leaves them. `cookies` are of the browser at the provider.
 */
export async function authorizeAt(
  authorizationUrl: string,
  login: string,
  cookies: Map<string, string> = new Map(),
): Promise<URL> {
  const { origin } = new URL(authorizationUrl)
  let url = authorizationUrl
  let body: URLSearchParams | undefined
  for (let step = 0; step < 20; step++) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const answer = await fetch(url, {
      redirect: 'manual',
      headers: { cookie },
      ...(body !== undefined && { method: 'POST', body }),
    })
    for (const line of answer.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      cookies.set(name, value)
    }
    const location = answer.headers.get('location')
    const html = await answer.text()
    body = undefined
    if (location === null) {
      const action = /<form[^>]* action="([^"]+)"/.exec(html)?.[1]
      if (action === undefined) throw new Error(`the provider answered ${answer.status}: ${html.slice(0, 2000)}`)
      const xsrf = /name="xsrf" value="(\w+)"/.exec(html)?.[1]
      const prompt = /name="prompt" value="(\w+)"/.exec(html)?.[1] ?? ''
      body = new URLSearchParams(xsrf === undefined ? { prompt, login, password: 'any' } : { xsrf, logout: 'yes' })
      url = new URL(action, url).href
    } else {
      url = new URL(location, url).href
      if (new URL(url).origin !== origin) return new URL(url)
    }
  }
  throw new Error('the provider sends the browser round and round')
}
