import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { defineConfig, type Plugin } from 'vite'
import manifest from '../../package.json' with { type: 'json' }
import { listPieces, makeWorld } from '../../scripts/world.js'
import { SECURITY_HEADERS } from '../app/http/security.ts'

// Whatever the environment says: this only builds for production.
process.env['NODE_ENV'] = 'production'

/** The map that every installation has. */
const world = makeWorld()
const worldFolder = `assets/world-${world.version}`

/**
 * `dist/web`: every file has a hash in its name, except for the page and files that browsers know by name. Scripts find
 * each other relative to themselves, so that only the page knows the path of the site.
 */
export default defineConfig({
  root: import.meta.dirname,
  define: {
    'import.meta.env.VERSION': JSON.stringify(manifest.version),
    'import.meta.env.WORLD': JSON.stringify({ folder: worldFolder, pieces: listPieces(world) }),
  },
  publicDir: false,
  build: {
    outDir: '../../dist/web',
    // `npm run build` empties it first; a simultaneous deployment must not.
    emptyOutDir: false,
    target: 'es2023',
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    chunkSizeWarningLimit: 400,
    rolldownOptions: {
      // A page loads the texts that it uses.
      treeshake: { manualPureFunctions: ['catalog'], moduleSideEffects: (id) => !id.includes('/strings') },
      output: {
        codeSplitting: {
          groups: [
            { name: nameFirst, debugName: 'first', includeDependenciesRecursively: false },
            { name: nameMap, debugName: 'map-parts', includeDependenciesRecursively: false },
          ],
        },
      },
    },
  },
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  resolve: {
    alias: [
      { find: /^leaflet$/, replacement: `${import.meta.dirname}/pages/map/leaflet/leaflet-parts.ts` },
      {
        find: /^\.\/(?:Icon\.Default|Marker\.Drag)$/,
        replacement: `${import.meta.dirname}/pages/map/leaflet/left-out.ts`,
      },
      {
        find: /^\.\.\/(?:\.\.\/)?core\/Browser$/,
        replacement: `${import.meta.dirname}/pages/map/leaflet/browser.ts`,
      },
      // Hono's client can set a cookie header, but a browser forbids it.
      { find: /^\.\.\/utils\/cookie\.js$/, replacement: `${import.meta.dirname}/no-cookies.ts` },
    ],
  },
  experimental: {
    renderBuiltUrl: (file, { hostType }) => (hostType === 'html' ? `/${file}` : { relative: true }),
  },
  plugins: [leafletStyles(), worldPieces(), workersHeaders(), installable()],
})

/** `strings.ts` names all texts, but nothing that is needed at first uses these. */
const OF_PAGES = /\/strings\/mesh\/(?:dashboard|messages|neighbors|routes)\.ts$/

/** Nearly every page uses these: a file of their own would be larger than they are. */
const OF_MOST_PAGES =
  /\/state\/(?:range|tagged|wide-screen)\.ts$|\/parts\/(?:connect-help|list\/(?:printing|steady-list))\.tsx?$|\/shared\/limits\.ts$/

type Graph = { getModuleInfo(id: string): { readonly importedIds: readonly string[] } | null }
const first = new Set<string>()

/** Puts everything that the page needs at first into one file, for fewer requests and better compression. */
function nameFirst(id: string, graph: Graph): string | null {
  if (first.size === 0) {
    const add = (found: string) => {
      if (first.has(found)) return
      first.add(found)
      graph.getModuleInfo(found)?.importedIds.forEach(add)
    }
    add(join(import.meta.dirname, 'main.tsx'))
  }
  return (first.has(id) && !OF_PAGES.test(id)) || OF_MOST_PAGES.test(id) ? 'first' : null
}

/** What the page of the map and frames of other sites need at once, and what draws: two files are smaller than many. */
const OF_MAP =
  /\/pages\/map\/(?:(?:data|drawing|filter|following|last-view|map-box|switches)\.tsx?|(?:cells\/choice|legend\/lazy-legend|marks\/marks|waypoints\/waypoint)\.ts|colouring\/(?:chosen-scale|colouring)\.ts)$|\/parts\/mesh\/(?:snr|traceroute)\.ts$|\/web\/measure\.ts$/
const DRAWS =
  /\/pages\/map\/(?:view|layers\/(?!hold|ruler|legs|trail)[\w-]+)\.ts$|\/parts\/map\/(?:[\w-]+|tiles\/(?:cover|start))\.ts$/
/** What lies under the map comes after it. */
const UNDER_MAP = /\/pages\/map\/(?:extras\.tsx|(?:horizon\/asked|overlays\/known)\.ts)$/
const LEAFLET = /\/leaflet\/(?:leaflet-parts\.ts$|src\/(?!layer\/tile))/
function nameMap(id: string): string | null {
  if (UNDER_MAP.test(id)) return 'extras'
  return OF_MAP.test(id) ? 'map-parts' : DRAWS.test(id) ? 'view' : LEAFLET.test(id) ? 'leaflet' : null
}

/** Leaves out of Leaflet's styles those of parts that `leaflet-parts.ts` leaves out. */
function leafletStyles(): Plugin {
  const leftOut =
    /popup|tooltip|control-layers|attribution|vml|zoom-box|div-icon|ruler|-shadow|oldie|default-icon|crosshair|image-layer|svg/
  return {
    name: 'leaflet-styles',
    enforce: 'pre',
    transform(code, id) {
      if (!id.endsWith('leaflet/dist/leaflet.css')) return null
      const rules = code
        .replaceAll(/\/\*[^]*?\*\//g, '')
        .replaceAll(/([^{}]+)(\{[^{}]*\})/g, (_, names: string, rule) => {
          const used = names.split(',').filter((name) => !leftOut.test(name))
          return used.length === 0 ? '' : used.join(',') + rule
        })
      return { code: rules, map: null }
    },
  }
}

/** `assets/world-<version>/<zoom>-<x>-<y>.bin`, read by `parts/map/world`. */
function worldPieces(): Plugin {
  return {
    name: 'world-pieces',
    generateBundle() {
      for (const [name, source] of world.pieces) {
        this.emitFile({ type: 'asset', fileName: `${worldFolder}/${name}`, source })
      }
    },
  }
}

/** On Workers, `_headers` gives these files the headers that the app adds elsewhere. */
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

/** Makes the site installable: manifest, icons, and service worker. */
function installable(): Plugin {
  const icon = (size: number) => ({ src: `icon-${size}.png`, sizes: `${size}x${size}`, type: 'image/png' })
  // A phone cuts this one to the shape of its other icons.
  const maskable = { src: 'icon-maskable.png', sizes: '512x512', type: 'image/png', purpose: 'maskable' }
  const shortcut = (name: string, url: string) => ({ name, url: `./${url}`, icons: [icon(192)] })
  const description = {
    name: 'Mesh Monitoring',
    short_name: 'Mesh',
    start_url: './',
    scope: './',
    display: 'standalone',
    background_color: '#0f1518',
    theme_color: '#0b6b6b',
    icons: [icon(192), icon(512), maskable],
    shortcuts: [
      shortcut('Nodes', 'nodes'),
      shortcut('Map', 'map'),
      shortcut('Messages', 'messages'),
      shortcut('Alerts', 'alerts'),
    ],
  }
  const link = (rel: string, href: string) => ({ tag: 'link', attrs: { rel, href }, injectTo: 'head' as const })
  return {
    name: 'installable',
    transformIndexHtml: {
      order: 'post',
      handler: () => [link('manifest', '/manifest.webmanifest'), link('apple-touch-icon', '/icon-192.png')],
    },
    generateBundle(_options, bundle) {
      const needed = Object.keys(bundle).filter((name) => /^assets\/first-.+\.(?:js|css)$/.test(name))
      const worker = readFileSync(join(import.meta.dirname, 'sw/sw.js'), 'utf8')
      const source = worker.replace("['%FIRST%']", () => JSON.stringify(needed))
      this.emitFile({ type: 'asset', fileName: 'sw.js', source })
      for (const fileName of ['offline.html', 'icon-192.png', 'icon-512.png', 'icon-maskable.png']) {
        this.emitFile({ type: 'asset', fileName, source: readFileSync(join(import.meta.dirname, 'sw', fileName)) })
      }
      this.emitFile({ type: 'asset', fileName: 'manifest.webmanifest', source: JSON.stringify(description) })
    },
  }
}
