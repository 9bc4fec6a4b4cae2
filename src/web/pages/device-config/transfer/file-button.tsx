import { useRef } from 'preact/hooks'

type Props = { label: string; accept: string; onFile(file: File | undefined): void }

/** A button that lets the user choose a file. */
export function FileButton({ label, accept, onFile }: Props) {
  const input = useRef<HTMLInputElement>(null)
  return (
    <div>
      <button type="button" class="button" onClick={() => input.current?.click()}>
        {label}
      </button>
      <input
        ref={input}
        type="file"
        hidden
        accept={accept}
        onChange={({ currentTarget }) => {
          onFile(currentTarget.files?.[0])
          // The same file can be chosen again after it was changed.
          currentTarget.value = ''
        }}
      />
    </div>
  )
}
