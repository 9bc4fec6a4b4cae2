/** Leaflet's own modules have no types: what `leaflet-parts.ts` makes of them is checked as Leaflet itself. */
declare module 'leaflet/src/*'
