import type { Row } from '../../api.ts'
import { OperationForm } from '../form/form.tsx'
import { PageHead, useOpen } from '../page.tsx'
import { done } from '../states.tsx'
import { capital, type Kind, keyOf, listOf, titleOf } from './kind.ts'

/** The form of a new definition. */
export const NewDefinition = ({ kind }: { kind: Kind }) => {
  const open = useOpen()
  return (
    <>
      <PageHead title={`New ${kind.noun}`} about={kind.about} back={{ title: capital(kind.plural), to: kind.at }} />
      <OperationForm
        isPage
        operation={`POST ${listOf(kind)}`}
        verb={`Create ${kind.noun}`}
        words={kind.words ?? {}}
        preset={kind.preset ?? {}}
        onCancel={() => open(kind.at)}
        onDone={(data) => {
          done(`${capital(kind.noun)} “${titleOf(kind, data as Row)}” is there.`)
          void open(`${kind.at}/${encodeURIComponent(keyOf(kind, data as Row))}`)
        }}
      />
    </>
  )
}
