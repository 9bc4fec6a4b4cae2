import { catalog } from '../../language.ts'
import { numberFormat } from '../quantity.ts'

export const backgroundTexts = catalog('backgroundTexts', {
  question: {
    title: 'What should the map show?',
    later: 'Your answer is for everybody here. You can change it in Settings.',
    tiles: 'OpenStreetMap tiles',
    tilesHelp: (host: string) =>
      `Streets everywhere. The browser of everybody who opens the map asks ${host}. That host learns their address and which area they look at.`,
    region: 'A detailed map of your region on this machine',
    regionHelp: 'Streets around your nodes. This service downloads them once. Browsers ask only this service.',
    regionEdge: 'Not possible here: on the edge there is no disk for it.',
    keep: 'As it is',
    keepHelp: 'Coasts, borders and towns. Nobody is asked.',
  },
  region: {
    title: 'Detailed map of a region',
    open: 'Detailed map of a region…',
    about: (source: string) =>
      `This service downloads streets and places from ${source}, which learns the area. Browsers ask only this service.`,
    inUse: 'Map in use',
    covers: 'Area',
    detail: 'Detail',
    zoomLevel: (zoom: number) => `up to zoom level ${zoom}`,
    size: 'Size',
    fetched: 'Downloaded',
    attribution: 'Attribution',
    update: 'Download again',
    removeMap: 'Remove…',
    remove: 'Remove',
    removeAsk: 'The map then shows only coasts, borders and towns here.',
    hidden: 'The map shows it once Settings choose no other tiles.',
    loading: 'Downloading…',
    progress: (fetched: string, total: string) => `${fetched} of ${total}`,
    cancel: 'Cancel the download',
    failed: 'The download stopped.',
    resume: 'Continue',
    discard: 'Discard what was downloaded',
    choose: 'Area to download',
    help: 'The area around your nodes is suggested. Move the map and press the button to take another one.',
    take: 'Take what this map shows',
    map: 'Map of the area',
    exact: 'In degrees',
    west: 'West',
    south: 'South',
    east: 'East',
    north: 'North',
    shows: (zoom: number) =>
      zoom >= 15
        ? 'single buildings'
        : zoom >= 13
          ? 'all streets'
          : zoom >= 11
            ? 'roads and villages'
            : 'towns and main roads',
    measuring: 'Asking how large it is…',
    measured: (size: string) => `About ${size}`,
    free: (free: string) => `${free} may be used on the disk.`,
    tooLarge: 'That is too large for this disk. Choose a smaller area or less detail.',
    start: 'Download',
    started: 'The download has started',
    degrees: (west: number, south: number, east: number, north: number) =>
      [south, west, north, east].map((degree) => numberFormat.format(degree)).join(', '),
  },
})
