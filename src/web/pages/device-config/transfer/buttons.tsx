import { useSignal } from '@preact/signals'
import { lazyPage } from '../../../parts/list/lazy-page.tsx'
import { can } from '../../../state/session.ts'
import { transfer } from '../../../strings/system/transfer.ts'
import type { Section } from '../model.ts'

const ShareDialog = lazyPage(async () => (await import('./share.tsx')).ShareDialog)
const AddDialog = lazyPage(async () => (await import('./add.tsx')).AddDialog)
const ExportDialog = lazyPage(async () => (await import('./file.tsx')).ExportDialog)
const ImportDialog = lazyPage(async () => (await import('./file.tsx')).ImportDialog)

/** For users who may change a connected radio. */
export function ChannelButtons({ section, onSent }: { section: Section; onSent(): void }) {
  const open = useSignal<'share' | 'add' | null>(null)
  const close = () => (open.value = null)
  return (
    <div class="transfer-buttons">
      <button type="button" class="button" onClick={() => (open.value = 'share')}>
        {transfer.share}
      </button>
      <button type="button" class="button" onClick={() => (open.value = 'add')}>
        {transfer.add}
      </button>
      {open.value === 'share' && <ShareDialog section={section} onClose={close} />}
      {open.value === 'add' && <AddDialog source={section.source} onClose={close} onSent={onSent} />}
    </div>
  )
}

/** For a connected radio. */
export function FileButtons({ source, onSent }: { source: string; onSent(): void }) {
  const open = useSignal<'export' | 'import' | null>(null)
  const close = () => (open.value = null)
  return (
    <div class="transfer-buttons">
      <button type="button" class="button" title={transfer.fileHelp} onClick={() => (open.value = 'export')}>
        {transfer.export}
      </button>
      {can('configuration', 'write') && (
        <button type="button" class="button" title={transfer.fileHelp} onClick={() => (open.value = 'import')}>
          {transfer.import}
        </button>
      )}
      {open.value === 'export' && <ExportDialog source={source} onClose={close} />}
      {open.value === 'import' && <ImportDialog source={source} onClose={close} onSent={onSent} />}
    </div>
  )
}
