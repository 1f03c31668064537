import { type ComponentProps, Suspense } from 'react'
import { lazyPart } from '../../outage.ts'
import type { JsonEditor } from './json_editor.tsx'

const Loaded = lazyPart(() => import('./json_editor.tsx'), 'JsonEditor')

/** The editor of JSON, loaded when the first one is shown. */
export const JsonCode = (props: ComponentProps<typeof JsonEditor>) => (
  <Suspense fallback={<div className="code" />}>
    <Loaded {...props} />
  </Suspense>
)
