import { defineConfig, type Plugin } from 'vite'
import manifest from '../../package.json' with { type: 'json' }
import { SECURITY_HEADERS } from '../app/http/security.ts'

/**
 * `dist/web`: every file but the page and the icon has a hash in its name. Scripts find each other relative to
 * themselves, so that only the page knows under which path the site stands.
 */
export default defineConfig({
  root: import.meta.dirname,
  define: { 'import.meta.env.VERSION': JSON.stringify(manifest.version) },
  publicDir: false,
  build: {
    outDir: '../../dist/web',
    // `npm run build` begins without it; a deployment that runs at the same time as another must not empty it.
    emptyOutDir: false,
    target: 'es2023',
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    chunkSizeWarningLimit: 400,
  },
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  resolve: { alias: [{ find: /^leaflet$/, replacement: `${import.meta.dirname}/pages/map/leaflet/leaflet-parts.ts` }] },
  experimental: {
    renderBuiltUrl: (file, { hostType }) => (hostType === 'html' ? `/${file}` : { relative: true }),
  },
  plugins: [workersHeaders()],
})

/** Workers read from `_headers` what the app adds elsewhere to each of these files. */
function workersHeaders(): Plugin {
  const lines = Object.entries(SECURITY_HEADERS).map(([name, value]) => `  ${name}: ${value}`)
  const source = ['/*', ...lines, '/assets/*', '  Cache-Control: public, max-age=31536000, immutable', ''].join('\n')
  return {
    name: 'workers-headers',
    generateBundle() {
      this.emitFile({ type: 'asset', fileName: '_headers', source })
    },
  }
}
