import { Anchor, Button, Group, NumberInput, Select, Skeleton, Stack, Switch, Text, Textarea } from '@mantine/core'
import { Download } from 'lucide-react'
import { useState } from 'react'
import { adminDeleteMedia, createMediaJob, updateMedia } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { Confirm } from '../parts/dialogs.tsx'
import { Drawer } from '../parts/drawer.tsx'
import { Facts, useProject } from '../parts/page.tsx'
import { done, Failure, failed, useRefresh, When } from '../parts/states.tsx'
import { Copied } from '../parts/status.tsx'
import { UserName } from '../parts/users.tsx'
import { bytes, isPicture, kindOf, type Media, ownUrl, useFile, useFolders } from './data.ts'

const Preview = ({ file }: { file: Media }) => {
  const url = ownUrl(file.storage_url)
  if (isPicture(file)) return <img className="preview" src={url} alt={file.alt_text ?? file.filename} />
  return (
    <Text size="sm" c="dimmed">
      {kindOf(file.mime_type)} has no preview here. Open it to look at it.
    </Text>
  )
}

/** A smaller or otherwise written copy of a picture, made in the background. */
const CopyForm = ({ file }: { file: Media }) => {
  const { path } = useProject()
  const refresh = useRefresh()
  const [width, setWidth] = useState<number>(800)
  const [format, setFormat] = useState('webp')
  const make = async () => {
    const operations = [
      { type: 'resize' as const, width, fit: 'contain' as const },
      { type: 'convert' as const, format: format as 'webp' },
    ]
    try {
      await call(createMediaJob, { path, body: { asset_id: file.id, operations } })
      done('The copy is being made; it appears in the library.')
      await refresh()
    } catch (error) {
      failed(error)
    }
  }
  return (
    <div>
      <div className="field-label">Make a copy</div>
      <Group align="flex-end" gap="xs" wrap="nowrap">
        <NumberInput
          aria-label="Width of the copy"
          suffix=" px wide"
          min={1}
          max={8192}
          value={width}
          onChange={(next) => setWidth(Number(next) || 800)}
          flex={1}
        />
        <Select
          aria-label="Format of the copy"
          allowDeselect={false}
          w={110}
          data={[
            { value: 'webp', label: 'WebP' },
            { value: 'avif', label: 'AVIF' },
            { value: 'jpeg', label: 'JPEG' },
            { value: 'png', label: 'PNG' },
          ]}
          value={format}
          onChange={(next) => setFormat(next ?? 'webp')}
        />
        <Button variant="default" onClick={make}>
          Make copy
        </Button>
      </Group>
    </div>
  )
}

const Content = ({ file, onClose }: { file: Media; onClose: () => void }) => {
  const { path } = useProject()
  const refresh = useRefresh()
  const { data: folders } = useFolders()
  const [text, setText] = useState(file.alt_text ?? '')
  const [isDeleting, setDeleting] = useState(false)
  const target = { path: { ...path, assetId: file.id } }
  const change = async (body: object, back: object, said: string) => {
    try {
      await call(updateMedia, { ...target, body })
      done(said, () => call(updateMedia, { ...target, body: back }).then(refresh))
      await refresh()
    } catch (error) {
      failed(error)
    }
  }
  return (
    <Stack gap="md">
      <Preview file={file} />
      <Facts
        facts={[
          ['Kind', kindOf(file.mime_type)],
          ['Size', bytes(file.size_bytes)],
          ['Of', file.uploaded_by ? <UserName key="of" id={file.uploaded_by} /> : 'the project'],
          ['Added', <When key="added" at={file.created_at} />],
          ...(file.public_url
            ? [
                [
                  'Address',
                  <Group key="address" gap={4} wrap="nowrap" justify="flex-end">
                    <span className="mono">{file.public_url.replace(/^https?:\/\//, '').slice(0, 28)}…</span>
                    <Copied value={file.public_url} label="Copy the address" />
                  </Group>,
                ] as const,
              ]
            : []),
        ]}
      />
      <Group>
        <Button
          component="a"
          href={ownUrl(file.storage_url)}
          target="_blank"
          rel="noreferrer"
          variant="default"
          size="xs"
          leftSection={<Download size={14} />}
        >
          Open file
        </Button>
      </Group>
      <Switch
        label="Everybody who has the address sees it"
        description="It gets a lasting address, without a key: for avatars and pictures in links"
        checked={file.is_public}
        onChange={() =>
          change(
            { is_public: !file.is_public },
            { is_public: file.is_public },
            file.is_public ? 'The address leads nowhere any more.' : 'The file has a public address.',
          )
        }
      />
      <Select
        label="Folder"
        placeholder="none"
        clearable
        clearButtonProps={{ 'aria-label': 'Take it out of the folder' }}
        data={(folders ?? []).map(({ id, name }) => ({ value: id, label: name }))}
        value={file.folder_id}
        onChange={(folder_id) => change({ folder_id }, { folder_id: file.folder_id }, 'Moved.')}
      />
      <Textarea
        label="What it shows"
        description="Read aloud to people who do not see it"
        rows={2}
        maxLength={2000}
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
        onBlur={() => {
          if (text !== (file.alt_text ?? ''))
            void change({ alt_text: text || null }, { alt_text: file.alt_text }, 'The description is saved.')
        }}
      />
      {isPicture(file) && <CopyForm file={file} />}
      <div>
        <Anchor component="button" type="button" size="sm" c="var(--bad)" onClick={() => setDeleting(true)}>
          Delete this file
        </Anchor>
      </div>
      <Confirm
        title="Delete file"
        verb="Delete file"
        said={`“${file.filename}” is deleted.`}
        isOpen={isDeleting}
        onClose={() => setDeleting(false)}
        typed="delete"
        run={() => call(adminDeleteMedia, target)}
        after={onClose}
      >
        “{file.filename}” goes for good, and what shows it in the app shows nothing.
      </Confirm>
    </Stack>
  )
}

/** One file: how it looks, who sees it, and what can be done with it. */
export const FileDrawer = ({ id, onClose }: { id: string | undefined; onClose: () => void }) => {
  const { data, error, refetch } = useFile(id)
  return (
    <Drawer opened={id !== undefined} onClose={onClose} title={data?.filename ?? 'File'} size="md">
      {error && <Failure error={error} onRetry={refetch} />}
      {data ? <Content key={data.id} file={data} onClose={onClose} /> : !error && <Skeleton h={280} />}
    </Drawer>
  )
}
