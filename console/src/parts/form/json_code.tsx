import { type ComponentProps, lazy, Suspense } from 'react'
import type { JsonEditor } from './json_editor.tsx'

const Loaded = lazy(async () => ({ default: (await import('./json_editor.tsx')).JsonEditor }))

/** The editor of JSON, loaded when the first one is shown. */
export const JsonCode = (props: ComponentProps<typeof JsonEditor>) => (
  <Suspense fallback={<div className="code" />}>
    <Loaded {...props} />
  </Suspense>
)
