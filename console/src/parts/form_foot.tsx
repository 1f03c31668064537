import { Button } from '@mantine/core'
import type { ReactNode } from 'react'
import { Failure } from './states.tsx'

/** The foot of a form: what was refused, the way out, and the verb. It stays in view while the form is scrolled. */
export const FormFoot = ({
  verb,
  work,
  onCancel,
  isDisabled = false,
  left,
  note,
}: {
  readonly verb: ReactNode
  /** What the form sends; a form that hands its values on sends nothing. */
  readonly work?: { readonly error: unknown; readonly isPending: boolean }
  readonly onCancel?: (() => void) | undefined
  readonly isDisabled?: boolean
  /** At the other end, such as a button that deletes. */
  readonly left?: ReactNode
  /** Beneath a refusal. */
  readonly note?: ReactNode
}) => {
  const refusal = work?.error ? (
    <>
      <Failure error={work.error} />
      {note}
    </>
  ) : undefined
  return (
    <div className="savebar">
      {(refusal || left) && (
        <div className="grow">
          {refusal}
          {left}
        </div>
      )}
      {onCancel && (
        <Button variant="default" onClick={onCancel}>
          Cancel
        </Button>
      )}
      <Button type="submit" loading={work?.isPending ?? false} disabled={isDisabled}>
        {verb}
      </Button>
    </div>
  )
}
