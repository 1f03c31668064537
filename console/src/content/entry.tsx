import { Menu, Skeleton } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { adminGetContent, deleteContent } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { Confirm } from '../parts/dialogs.tsx'
import { OperationForm } from '../parts/form/form.tsx'
import { More } from '../parts/more.tsx'
import { Card, PageHead, useAddress, useOpen, useParam, useProject, Views } from '../parts/page.tsx'
import { done, Failure } from '../parts/states.tsx'
import type { Entry } from './data.ts'
import { Preview } from './preview.tsx'
import { Texts } from './texts.tsx'
import { Versions } from './versions.tsx'

const back = { title: 'Content', to: 'content' }
const views = [
  ['texts', 'Texts'],
  ['versions', 'Versions'],
  ['settings', 'Settings'],
] as const

const Settings = ({ entry }: { entry: Entry }) => (
  <div className="narrow">
    <Card title="Who sees it, and when">
      <OperationForm
        key={entry.version}
        operation="PATCH /v1/admin/projects/{projectId}/content/{idOrKey}"
        path={{ idOrKey: entry.id }}
        row={entry as never}
        verb="Save settings"
        onDone={() => done('Saved.')}
      />
    </Card>
  </div>
)

/** One entry: its languages beside each other, its versions, and who sees it. */
export const Page = () => {
  const key = useParam('key')
  const { path } = useProject()
  const open = useOpen()
  const [{ view }] = useAddress<'view'>()
  const [isDeleting, setDeleting] = useState(false)
  const { data, error, refetch } = useQuery({
    queryKey: ['content', path.projectId, key],
    queryFn: async () => (await call(adminGetContent, { path: { ...path, idOrKey: key } })).data,
  })
  if (error || !data)
    return (
      <>
        <PageHead title="Entry" back={back} />
        {error ? <Failure error={error} onRetry={refetch} /> : <Skeleton h={320} />}
      </>
    )
  return (
    <>
      <PageHead
        title={data.key}
        about={data.content_type}
        back={back}
        actions={
          <>
            <Preview entry={data} />
            <More>
              <Menu.Item c="var(--bad)" onClick={() => setDeleting(true)}>
                Delete entry
              </Menu.Item>
            </More>
          </>
        }
      />
      <Views views={views} label="Entry" />
      {view === 'versions' ? (
        <Versions entry={data} />
      ) : view === 'settings' ? (
        <Settings entry={data} />
      ) : (
        <Texts entry={data} />
      )}
      <Confirm
        title="Delete entry"
        verb="Delete entry"
        said={`“${data.key}” is deleted.`}
        isOpen={isDeleting}
        onClose={() => setDeleting(false)}
        typed={data.key}
        run={() => call(deleteContent, { path: { ...path, idOrKey: data.id } })}
        after={() => void open('content')}
      >
        “{data.key}” goes for good, with all languages and versions. Apps do not see it any more.
      </Confirm>
    </>
  )
}
