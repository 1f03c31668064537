import { Skeleton } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import type { Row } from '../../api.ts'
import { useDocument } from './document.ts'
import type { FieldWords } from './field.ts'

export type OperationFormProps = {
  /** `POST /v1/...`, with `{projectId}` and other parameters from `path`. */
  readonly operation: string
  readonly path?: Readonly<Record<string, string>>
  /** The row that is edited; a form that creates has none. */
  readonly row?: Row
  /** What the form begins with and sends, though nobody touched it. */
  readonly preset?: Row
  /** Sent with the body, and not shown. */
  readonly fixed?: Row
  /** The verb of the button: `Create leaderboard`. */
  readonly verb: string
  readonly words?: Readonly<Record<string, FieldWords>>
  readonly onDone: (data: unknown) => void
  readonly onCancel?: () => void
  /** In a page: sections as cards, and the same as a request at the right. Else as in a drawer. */
  readonly isPage?: boolean
  readonly children?: ReactNode
}

/** Controls of every kind, loaded when the first form is opened. Not by `lazy`: React shows what a boundary waited for at the earliest 0.3 s after its fallback. */
const useControls = () =>
  useQuery({
    queryKey: ['forms', 'controls'],
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: Number.POSITIVE_INFINITY,
    queryFn: async () => (await import('./operation_form.tsx')).LoadedForm,
  }).data

/** Fields to come. Seen only where they take longer than a blink. */
const Waiting = () => (
  <div className="form-waiting" role="status" aria-busy="true" aria-label="Loading">
    {[120, 90, 140].map((width) => (
      <div key={width}>
        <Skeleton h={12} w={width} mb={6} />
        <Skeleton h={36} />
      </div>
    ))}
  </div>
)

/** A form for the body of an operation, made from the schema of the document. */
export const OperationForm = (props: OperationFormProps) => {
  const document = useDocument(props.operation)
  const Controls = useControls()
  return document && Controls ? <Controls {...props} document={document} /> : <Waiting />
}
