import { OperationForm } from '../parts/form/form.tsx'
import { PageHead, useOpen } from '../parts/page.tsx'
import { done } from '../parts/states.tsx'
import { words } from './data.ts'

/** A new prompt. */
export const Page = () => {
  const open = useOpen()
  return (
    <>
      <PageHead
        title="New prompt"
        about="Instructions for a model, which apps ask by name"
        back={{ title: 'Prompts', to: 'ai' }}
      />
      <OperationForm
        isPage
        operation="POST /v1/admin/projects/{projectId}/ai/prompts"
        verb="Create prompt"
        words={words}
        onCancel={() => open('ai')}
        onDone={(data) => {
          const { name } = data as { name: string }
          done(`The prompt “${name}” is there.`)
          void open(`ai/prompts/${name}`)
        }}
      />
    </>
  )
}
