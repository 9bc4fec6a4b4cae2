import { useSignal } from '@preact/signals'
import { bytes, stamp } from '../../../format.ts'
import { Dialog } from '../../../parts/dialog.tsx'
import { Failure, Loading, Problem, say } from '../../../parts/notice.tsx'
import { Facts } from '../../../parts/page.tsx'
import { useAction } from '../../../state/load.ts'
import { backgroundTexts } from '../../../strings/mesh/background.ts'
import { t } from '../../../strings.ts'
import './background.css'
import { type Area, endRegion, type Region, startRegion, useRegion } from './region.ts'
import { RegionForm } from './region-form.tsx'

/** Downloads a detailed map of a region to this machine, updates it or removes it. `isHidden`: other tiles are chosen. */
export function RegionDialog({ isHidden = false, onClose }: { isHidden?: boolean; onClose(): void }) {
  const { region, error, reload } = useRegion()
  const action = useAction()
  const texts = backgroundTexts.region
  const act = (work: () => Promise<void>) =>
    action.run(async () => {
      await work()
      await reload()
    })
  const start = (area: Area) =>
    act(async () => {
      await startRegion(area)
      say(texts.started)
    })
  return (
    <Dialog title={texts.title} onClose={onClose}>
      <div class="stack region">
        <Failure error={error} retry={() => void reload()} />
        <Failure error={action.error.value} />
        {region === null && error === null && <Loading />}
        {region !== null && (
          <>
            <p class="measure">{texts.about(region.source)}</p>
            {isHidden && <p class="faint measure">{texts.hidden}</p>}
            {region.state === 'loading' && <Progress region={region} end={() => act(() => endRegion('download'))} />}
            {region.state === 'failed' && (
              <Stopped
                region={region}
                resume={() => region.wanted !== null && start(region.wanted)}
                discard={() => act(() => endRegion('download'))}
              />
            )}
            {region.bounds !== null && (
              <InUse
                region={region}
                isBusy={action.busy.value || region.state === 'loading'}
                update={() => region.bounds !== null && start({ bounds: region.bounds, maxZoom: region.maxZoom })}
                remove={() => act(() => endRegion('map'))}
              />
            )}
            {region.state !== 'loading' && <RegionForm region={region} isBusy={action.busy.value} start={start} />}
          </>
        )}
      </div>
    </Dialog>
  )
}

function Progress({ region, end }: { region: Region; end(): void }) {
  const texts = backgroundTexts.region
  const { fetchedBytes, totalBytes } = region
  const isKnown = totalBytes > 0
  return (
    <div class="stack" role="status">
      <label>
        {texts.loading} {/* Without a value the bar says that nothing is known yet. */}
        <progress {...(isKnown && { value: fetchedBytes, max: totalBytes })} />
      </label>
      {isKnown && <p>{texts.progress(bytes(fetchedBytes), bytes(totalBytes))}</p>}
      <div>
        <button type="button" class="button" onClick={end}>
          {texts.cancel}
        </button>
      </div>
    </div>
  )
}

function Stopped({ region, resume, discard }: { region: Region; resume(): void; discard(): void }) {
  const texts = backgroundTexts.region
  return (
    <div class="stack">
      <Problem>
        {texts.failed} {region.problem}
      </Problem>
      {region.totalBytes > 0 && <p>{texts.progress(bytes(region.fetchedBytes), bytes(region.totalBytes))}</p>}
      <div class="form-actions">
        <button type="button" class="button" onClick={discard}>
          {texts.discard}
        </button>
        <button type="button" class="button primary" onClick={resume}>
          {texts.resume}
        </button>
      </div>
    </div>
  )
}

type InUseProps = { region: Region; isBusy: boolean; update(): void; remove(): void }

function InUse({ region, isBusy, update, remove }: InUseProps) {
  const isAsked = useSignal(false)
  const texts = backgroundTexts.region
  return (
    <section class="stack" aria-label={texts.inUse}>
      <h3>{texts.inUse}</h3>
      <Facts
        entries={[
          [texts.covers, region.bounds === null ? null : texts.degrees(...region.bounds)],
          [texts.detail, texts.zoomLevel(region.maxZoom)],
          [texts.size, bytes(region.bytes)],
          [texts.fetched, region.t === null ? null : stamp(region.t)],
          [texts.attribution, region.attribution],
        ]}
      />
      {isAsked.value ? (
        <>
          <p class="measure">{texts.removeAsk}</p>
          <div class="form-actions">
            <button type="button" class="button" onClick={() => (isAsked.value = false)}>
              {t.common.cancel}
            </button>
            <button type="button" class="button danger" disabled={isBusy} onClick={remove}>
              {texts.remove}
            </button>
          </div>
        </>
      ) : (
        <div class="form-actions">
          <button type="button" class="button" disabled={isBusy} onClick={() => (isAsked.value = true)}>
            {texts.removeMap}
          </button>
          <button type="button" class="button" disabled={isBusy} onClick={update}>
            {texts.update}
          </button>
        </div>
      )}
    </section>
  )
}
