import { Skeleton } from '@mantine/core'
import { lazy, type ReactNode, Suspense } from 'react'
import type { Row } from '../../api.ts'
import type { FieldWords } from './fields.tsx'

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

// controls of every kind: loaded when the first form is opened
const Loaded = lazy(async () => ({ default: (await import('./operation_form.tsx')).OperationForm }))

/** A form for the body of an operation, made from the schema of the document. */
export const OperationForm = (props: OperationFormProps) => (
  <Suspense fallback={<Skeleton h={320} />}>
    <Loaded {...props} />
  </Suspense>
)
