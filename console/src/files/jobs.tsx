import { Group, SegmentedControl } from '@mantine/core'
import { Wand2 } from 'lucide-react'
import type { MediaJob } from '../../../sdk/src/generated/schemas.ts'
import { List } from '../parts/list.tsx'
import { PageHead, ProjectLink, useAddress } from '../parts/page.tsx'
import { Empty, When } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { useFile } from './data.ts'

const FileLink = ({ id }: { id: string }) => {
  const { data, error } = useFile(id)
  return (
    <ProjectLink to="files" search={{ file: id }}>
      {data?.filename ?? (error ? 'A deleted file' : '…')}
    </ProjectLink>
  )
}

const work: Readonly<Record<string, string>> = {
  resize: 'size',
  crop: 'crop',
  convert: 'write as',
  strip_metadata: 'take the metadata away',
  thumbnail: 'thumbnail',
}
const workOf = ({ operations }: MediaJob): string =>
  operations
    .map(({ type, width, height, format }) =>
      [
        work[String(type)] ?? String(type),
        width && height ? `${width} x ${height}` : width ? `${width} wide` : height ? `${height} high` : '',
        format ?? '',
      ]
        .filter((part) => part !== '')
        .join(' '),
    )
    .join(', ')

/** Work on pictures, in the background. */
export const Page = () => {
  const [{ status = 'all' }, setAddress] = useAddress<'status'>()
  return (
    <>
      <PageHead title="Jobs" about="Copies of pictures that are made in the background; kept for 30 days" />
      <Group mb="sm" className="scroll-x">
        <SegmentedControl
          size="xs"
          aria-label="State"
          value={status}
          onChange={(next) => setAddress({ status: next === 'all' ? undefined : next })}
          data={[
            { value: 'all', label: 'All' },
            { value: 'queued', label: 'Waiting' },
            { value: 'running', label: 'Running' },
            { value: 'succeeded', label: 'Done' },
            { value: 'failed', label: 'Failed' },
          ]}
        />
      </Group>
      <List<MediaJob>
        name="Jobs"
        operation="GET /v1/admin/projects/{projectId}/media/jobs"
        query={status === 'all' ? {} : { status }}
        every={5000}
        columns={[
          { title: 'Picture', show: ({ asset_id }) => <FileLink id={asset_id} /> },
          { title: 'Work', show: workOf },
          {
            title: 'State',
            show: ({ status: state, error }) => (
              <>
                <Status value={state} />
                {error && <span className="cell-sub">{error.message}</span>}
              </>
            ),
          },
          {
            title: 'Result',
            show: ({ result_asset_id }) => (result_asset_id ? <FileLink id={result_asset_id} /> : '—'),
          },
          { title: 'Asked for', show: ({ created_at }) => <When at={created_at} /> },
        ]}
        empty={
          <Empty icon={<Wand2 size={22} />} title={status === 'all' ? 'No jobs' : 'None in this state'}>
            A picture in the library has “Make a copy”: smaller, or in another format.
          </Empty>
        }
      />
    </>
  )
}
