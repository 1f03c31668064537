import { Button, FileButton, Group, Menu, Progress, SegmentedControl, Select, Stack, Text } from '@mantine/core'
import { FolderPlus, Globe, ImageIcon, LayoutGrid, List as ListIcon, Upload } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { callAny } from '../api.ts'
import { List, SearchBox, useRows } from '../parts/list.tsx'
import { More } from '../parts/more.tsx'
import { PageHead, useAddress, useProject } from '../parts/page.tsx'
import { RowButton } from '../parts/row_button.tsx'
import { counted, done, Empty, Failure, failed, Rows, useRefresh, When } from '../parts/states.tsx'
import { UserName } from '../parts/users.tsx'
import { bytes, kindChoices, kindOf, type Media, useFolders } from './data.ts'
import { FileDrawer } from './file_drawer.tsx'
import { FolderDialog } from './folder_dialog.tsx'
import { Picture } from './picture.tsx'
import { useUpload } from './upload.ts'

type Keys = 'q' | 'folder' | 'type' | 'look' | 'file'
const operation = 'GET /v1/admin/projects/{projectId}/media'

const Pictures = ({
  query,
  onOpen,
  empty,
}: {
  query: Readonly<Record<string, string | undefined>>
  onOpen: (file: Media) => void
  empty: ReactNode
}) => {
  const { list, rows, total } = useRows<Media>({ operation, query })
  if (list.error && rows.length === 0) return <Failure error={list.error} onRetry={list.refetch} />
  if (list.isPending) return <Rows count={3} height={150} />
  if (rows.length === 0) return <div className="card">{empty}</div>
  return (
    <>
      <ul className="pictures">
        {rows.map((file) => (
          <li key={file.id}>
            <button type="button" className="picture" onClick={() => onOpen(file)}>
              <span className="picture-frame">
                <Picture file={file} size={40} />
              </span>
              <span className="picture-name">{file.filename}</span>
              <span className="cell-sub">
                {bytes(file.size_bytes)}
                {file.is_public && ', public'}
              </span>
            </button>
          </li>
        ))}
      </ul>
      <Group justify="space-between" mt="sm">
        <Text size="sm" c="dimmed" role="status">
          {total === undefined || total === rows.length ? counted(rows.length, 'file') : `${rows.length} of ${total}`}
        </Text>
        {list.hasNextPage && (
          <Button variant="default" size="xs" loading={list.isFetchingNextPage} onClick={() => list.fetchNextPage()}>
            Show more
          </Button>
        )}
      </Group>
    </>
  )
}

/** The folders, as chips above the files; one can be renamed or deleted where it is open. */
const Folders = ({
  current,
  onChange,
}: {
  current: string | undefined
  onChange: (id: string | undefined) => void
}) => {
  const { path } = useProject()
  const refresh = useRefresh()
  const { data } = useFolders()
  const [dialog, setDialog] = useState<'new' | 'rename'>()
  const folder = data?.find(({ id }) => id === current)
  const drop = async () => {
    if (!folder) return
    try {
      await callAny('DELETE /v1/admin/projects/{projectId}/media/folders/{folderId}', {
        path: { ...path, folderId: folder.id },
      })
      onChange(undefined)
      done(`The folder “${folder.name}” is deleted.`)
      await refresh()
    } catch (error) {
      failed(error)
    }
  }
  return (
    <Group gap={6} mb="sm">
      {data && data.length > 0 && (
        <fieldset className="steps" aria-label="Folder">
          {[{ id: undefined, name: 'All files' }, ...data].map(({ id, name }) => (
            <Button
              key={id ?? 'all'}
              size="compact-sm"
              variant={id === current ? 'filled' : 'default'}
              aria-pressed={id === current}
              onClick={() => onChange(id)}
            >
              {name}
            </Button>
          ))}
        </fieldset>
      )}
      <Button
        size="compact-sm"
        variant="subtle"
        leftSection={<FolderPlus size={14} />}
        onClick={() => setDialog('new')}
      >
        New folder
      </Button>
      {folder && (
        <More label={`More about the folder ${folder.name}`} isSmall>
          <Menu.Item onClick={() => setDialog('rename')}>Rename folder</Menu.Item>
          <Menu.Item c="var(--bad)" onClick={drop}>
            Delete empty folder
          </Menu.Item>
        </More>
      )}
      <FolderDialog
        folder={dialog === 'rename' ? folder : undefined}
        isOpen={dialog !== undefined}
        onClose={() => setDialog(undefined)}
        onMade={onChange}
      />
    </Group>
  )
}

/** The files of the project and of its users. */
export const Page = () => {
  const [{ q, folder, type, look = 'pictures', file }, setAddress] = useAddress<Keys>()
  const { sendings, upload } = useUpload(folder)
  const [isOver, setOver] = useState(false)
  const query = { search: q, folder_id: folder, mime_type: type, status: 'committed' }
  const open = (one: Media) => setAddress({ file: one.id }, false)
  const button = (
    <FileButton multiple onChange={(files) => upload(files)}>
      {(props) => (
        <Button {...props} leftSection={<Upload size={16} />}>
          Upload
        </Button>
      )}
    </FileButton>
  )
  const isFiltered = Boolean(q || folder || type)
  const empty = isFiltered ? (
    <Empty title="No file matches" action={folder && !q && !type ? button : undefined}>
      {folder && !q && !type && 'The folder is empty: drop files here.'}
    </Empty>
  ) : (
    <Empty icon={<ImageIcon size={22} />} title="No files yet" action={button}>
      Drop pictures, sounds, videos or documents here, up to 50 MB each. Apps upload files of their users with{' '}
      <code>upload(app, file)</code>.
    </Empty>
  )
  return (
    <section
      aria-label="Library"
      className="drop-page"
      data-over={isOver || undefined}
      onDragOver={(event) => {
        event.preventDefault()
        setOver(true)
      }}
      onDragLeave={(event) => {
        if (!event.currentTarget.contains(event.relatedTarget as Node | null)) setOver(false)
      }}
      onDrop={(event) => {
        event.preventDefault()
        setOver(false)
        void upload([...event.dataTransfer.files])
      }}
    >
      <PageHead title="Files" about="Of your app and of its users. Drop files anywhere on this page" actions={button} />
      <Group mb="sm" gap="xs" justify="space-between">
        <Group gap="xs">
          <SearchBox label="Search files" placeholder="Name of a file" />
          <Select
            aria-label="Kind of file"
            placeholder="Every kind"
            clearable
            w={170}
            data={kindChoices}
            value={type ?? null}
            onChange={(next) => setAddress({ type: next ?? undefined })}
          />
        </Group>
        <SegmentedControl
          aria-label="Look"
          value={look}
          onChange={(next) => setAddress({ look: next === 'pictures' ? undefined : next })}
          data={[
            {
              value: 'pictures',
              label: (
                <Group gap={6} wrap="nowrap">
                  <LayoutGrid size={15} aria-hidden /> Pictures
                </Group>
              ),
            },
            {
              value: 'list',
              label: (
                <Group gap={6} wrap="nowrap">
                  <ListIcon size={15} aria-hidden /> List
                </Group>
              ),
            },
          ]}
        />
      </Group>
      <Folders current={folder} onChange={(id) => setAddress({ folder: id }, false)} />
      {sendings.length > 0 && (
        <Stack gap={6} mb="sm" aria-live="polite">
          {sendings.map(({ id, name, share, problem }) => (
            <div key={id}>
              <Text size="sm" {...(problem ? { c: 'var(--bad)' } : {})}>
                {name}
                {problem && `: ${problem}`}
              </Text>
              {!problem && <Progress value={share * 100} aria-label={`Uploading ${name}`} />}
            </div>
          ))}
        </Stack>
      )}
      {look === 'list' ? (
        <List<Media>
          name="Files"
          operation={operation}
          query={query}
          onOpen={open}
          empty={empty}
          columns={[
            {
              title: 'File',
              show: (one) => (
                <Group gap={10} wrap="nowrap">
                  <span className="thumb">
                    <Picture file={one} size={18} />
                  </span>
                  <div>
                    <RowButton onClick={() => open(one)}>{one.filename}</RowButton>
                    <span className="cell-sub">{one.alt_text ?? kindOf(one.mime_type)}</span>
                  </div>
                </Group>
              ),
            },
            { title: 'Size', isNumber: true, show: (one) => bytes(one.size_bytes) },
            {
              title: 'Of',
              show: (one) => (one.uploaded_by ? <UserName id={one.uploaded_by} /> : 'the project'),
            },
            {
              title: 'Seen by',
              show: (one) =>
                one.is_public ? (
                  <Group gap={4} wrap="nowrap">
                    <Globe size={14} aria-hidden /> everybody
                  </Group>
                ) : (
                  'who may'
                ),
            },
            { title: 'Added', show: (one) => <When at={one.created_at} /> },
          ]}
        />
      ) : (
        <Pictures query={query} onOpen={open} empty={empty} />
      )}
      <FileDrawer id={file} onClose={() => setAddress({ file: undefined })} />
    </section>
  )
}
