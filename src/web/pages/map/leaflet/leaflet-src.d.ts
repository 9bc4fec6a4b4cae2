/** Leaflet's own modules have no types: the exports of `leaflet-parts.ts` are checked as Leaflet itself. */
declare module 'leaflet/src/*'
