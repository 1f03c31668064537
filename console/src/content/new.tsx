import { OperationForm } from '../parts/form/form.tsx'
import { PageHead, useOpen } from '../parts/page.tsx'
import { done } from '../parts/states.tsx'
import type { Entry } from './data.ts'

/** A new entry: its key and type. Its texts are written on its page. */
export const Page = () => {
  const open = useOpen()
  return (
    <>
      <PageHead
        title="New entry"
        about="Its texts are written next, in each language"
        back={{ title: 'Content', to: 'content' }}
      />
      <OperationForm
        operation="POST /v1/admin/projects/{projectId}/content"
        verb="Create entry"
        isPage
        words={{ fields: { isHidden: true } }}
        onCancel={() => open('content')}
        onDone={(made) => {
          const { key } = made as Entry
          done(`“${key}” is there.`)
          void open(`content/${encodeURIComponent(key)}`)
        }}
      />
    </>
  )
}
