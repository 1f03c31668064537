import { useState } from 'react'
import { callAny, TrellisError } from '../../api.ts'
import { Confirm } from '../dialogs.tsx'
import { useOpen, useProject } from '../page.tsx'
import { type Kind, rowOf } from './kind.ts'

/** Deletes a definition after its name is typed. One that is in use is refused, and deleted only by a second consent. */
export const DeleteDefinition = ({
  kind,
  path,
  title,
  isOpen,
  onClose,
}: {
  kind: Kind
  path: Readonly<Record<string, string>>
  title: string
  isOpen: boolean
  onClose: () => void
}) => {
  const { path: project } = useProject()
  const open = useOpen()
  const [consent, setConsent] = useState<string>()
  const at = { ...project, ...path }
  const remove = async (isForced: boolean) => {
    try {
      return await callAny(`DELETE ${rowOf(kind)}`, { path: at, query: isForced ? { force: true } : {} })
    } catch (error) {
      if (!kind.inUse || !(error instanceof TrellisError) || error.code !== kind.inUse.code) throw error
      const { total = 0 } = await callAny(kind.inUse.operation, { path: at, query: { limit: 1 } })
      setConsent(kind.inUse.consent(total))
      throw new Error(kind.inUse.refusal(total))
    }
  }
  return (
    <Confirm
      title={`Delete ${kind.noun}`}
      verb={`Delete ${kind.noun}`}
      said={`“${title}” is deleted.`}
      isOpen={isOpen}
      onClose={() => {
        setConsent(undefined)
        onClose()
      }}
      typed={title}
      consent={consent}
      run={remove}
      after={() => void open(kind.at)}
    >
      “{title}” and what users have of it go for good.
    </Confirm>
  )
}
