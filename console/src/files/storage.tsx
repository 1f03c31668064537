import { Group, Menu, Progress, Skeleton, Tabs, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { HardDrive } from 'lucide-react'
import { useState } from 'react'
import { deleteStorageObjects, getStorageUsage } from '../../../sdk/src/generated/admin.ts'
import type { StorageObject } from '../../../sdk/src/generated/schemas.ts'
import { call } from '../api.ts'
import { Confirm } from '../parts/dialogs.tsx'
import { List, SearchBox } from '../parts/list.tsx'
import { More } from '../parts/more.tsx'
import { PageHead, ProjectLink, useAddress, useProject } from '../parts/page.tsx'
import { counted, Empty, Failure, When } from '../parts/states.tsx'
import { bytes, kindOf } from './data.ts'

const about: Readonly<Record<string, string>> = {
  media: 'Files of the library',
  functions: 'Code of functions',
  sites: 'Pages of sites',
  exports: 'Exports of data',
}

/** What is stored where, and how much of the limit it takes. */
export const Page = () => {
  const { path } = useProject()
  const [{ bucket = 'media', q }, setAddress] = useAddress<'bucket' | 'q'>()
  const [gone, setGone] = useState<StorageObject>()
  const [isDeleting, setDeleting] = useState(false)
  const { data, error, refetch } = useQuery({
    queryKey: ['storage', path.projectId],
    queryFn: async () => (await call(getStorageUsage, { path })).data,
  })
  const share = data?.limit_bytes ? (data.registered_bytes / data.limit_bytes) * 100 : undefined
  return (
    <>
      <PageHead title="Storage" about="What is stored where, and how much of it there is" />
      {error && <Failure error={error} onRetry={refetch} />}
      {!data && !error && <Skeleton h={110} />}
      {data && (
        <section className="card" aria-label="Use">
          <Group justify="space-between" mb={8}>
            <Text fw={600}>
              {bytes(data.registered_bytes)}
              {data.limit_bytes !== null && ` of ${bytes(data.limit_bytes)}`}
            </Text>
            {share !== undefined && (
              <Text size="sm" c="dimmed">
                {share < 1 && share > 0 ? 'less than 1' : Math.round(share)} % of the free tier
              </Text>
            )}
          </Group>
          {share !== undefined && (
            <Progress
              value={share}
              {...(share > 90 ? { color: 'red' } : {})}
              aria-label={`${Math.round(share)} % of the limit is used`}
            />
          )}
        </section>
      )}
      <Tabs
        value={bucket}
        onChange={(next) => setAddress({ bucket: next === 'media' ? undefined : (next ?? undefined), q: undefined })}
        my="md"
      >
        <Tabs.List>
          {(data?.buckets ?? []).map((one) => (
            <Tabs.Tab key={one.bucket} value={one.bucket}>
              {one.bucket}{' '}
              <span className="dimmed">
                {one.objects === 0 ? 'empty' : `${counted(one.objects, 'object')}, ${bytes(one.bytes)}`}
              </span>
            </Tabs.Tab>
          ))}
        </Tabs.List>
      </Tabs>
      <Group mb="sm" justify="space-between">
        <SearchBox key={bucket} label="Begins with" placeholder="Keys that begin with, such as user/" />
        <Text size="sm" c="dimmed">
          {about[bucket]}
        </Text>
      </Group>
      <List<StorageObject>
        key={bucket}
        name="Objects"
        operation="GET /v1/admin/projects/{projectId}/storage/objects"
        query={{ bucket, ...(q ? { prefix: q } : {}) }}
        keyOf={({ key }) => key}
        columns={[
          {
            title: 'Key',
            show: ({ key, asset_id }) =>
              bucket === 'media' ? (
                <>
                  <ProjectLink to="files" search={{ file: asset_id }}>
                    {key.replace(/^.*_/, '')}
                  </ProjectLink>
                  <span className="cell-sub mono">{key}</span>
                </>
              ) : (
                <span className="mono">{key}</span>
              ),
          },
          { title: 'Size', isNumber: true, show: ({ size_bytes }) => bytes(size_bytes) },
          { title: 'Kind', show: ({ mime_type }) => kindOf(mime_type) },
          { title: 'Stored', show: ({ created_at }) => <When at={created_at} /> },
          {
            title: 'Actions',
            isNumber: true,
            show: (object) => (
              <More label={`More about ${object.key.replace(/^.*_/, '')}`} isSmall>
                <Menu.Item
                  c="var(--bad)"
                  onClick={() => {
                    setGone(object)
                    setDeleting(true)
                  }}
                >
                  Delete object
                </Menu.Item>
              </More>
            ),
          },
        ]}
        empty={
          <Empty icon={<HardDrive size={22} />} title={q ? 'No key begins so' : 'Nothing is stored here'}>
            {!q && about[bucket]}
          </Empty>
        }
      />
      <Confirm
        title="Delete object"
        verb="Delete object"
        said="The object is deleted."
        isOpen={isDeleting}
        onClose={() => setDeleting(false)}
        typed="delete"
        run={() => call(deleteStorageObjects, { path, body: { bucket, keys: [gone?.key ?? ''] } })}
      >
        <span className="mono">{gone?.key}</span> goes for good.
      </Confirm>
    </>
  )
}
