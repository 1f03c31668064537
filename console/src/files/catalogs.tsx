import { ActionIcon, Button, Group, Modal, Text } from '@mantine/core'
import { useQueries } from '@tanstack/react-query'
import { ArrowLeft, ArrowRight, Check, GalleryHorizontalEnd, Plus, X } from 'lucide-react'
import { useState } from 'react'
import { adminGetMedia, updateMediaCatalogDefinition } from '../../../sdk/src/generated/admin.ts'
import { call, type Row } from '../api.ts'
import { changedColumn } from '../parts/definitions/columns.tsx'
import type { Kind } from '../parts/definitions/kind.ts'
import { pagesOf } from '../parts/definitions/pages.tsx'
import { SearchBox } from '../parts/list.tsx'
import { Card, ProjectLink, useAddress, useProject } from '../parts/page.tsx'
import { counted, done, Empty, failed, useRefresh } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { type Media, useFiles } from './data.ts'
import { Picture } from './picture.tsx'

const idsOf = (row: Row) => row['asset_ids'] as readonly string[]

/** The files of a catalog in their order. */
const Files = ({ row }: { row: Row }) => {
  const { path } = useProject()
  const refresh = useRefresh()
  const [{ q = '' }] = useAddress<'q'>()
  const [isChoosing, setChoosing] = useState(false)
  const found = useFiles(q)
  const ids = idsOf(row)
  const slug = String(row['slug'])
  const put = (asset_ids: readonly string[]) =>
    call(updateMediaCatalogDefinition, { path: { ...path, slug }, body: { asset_ids: [...asset_ids] } })
  const set = async (next: readonly string[], said: string) => {
    try {
      await put(next)
      done(said, () => put(ids).then(refresh))
      await refresh()
    } catch (error) {
      failed(error)
    }
  }
  const files = useQueries({
    queries: ids.map((id) => ({
      queryKey: ['file', path.projectId, id],
      staleTime: 60_000,
      queryFn: async () => (await call(adminGetMedia, { path: { ...path, assetId: id } })).data as Media,
    })),
  })
  const moved = (at: number, by: number) => {
    const next = [...ids]
    const [id] = next.splice(at, 1)
    if (id) next.splice(at + by, 0, id)
    return next
  }
  const add = (
    <Button variant="default" size="xs" leftSection={<Plus size={14} />} onClick={() => setChoosing(true)}>
      Add files
    </Button>
  )
  return (
    <Card title={counted(ids.length, 'file')} actions={add}>
      {ids.length === 0 && (
        <Empty icon={<GalleryHorizontalEnd size={22} />} title="Nothing in it yet" action={add}>
          Apps show its files in the order in which they stand here.
        </Empty>
      )}
      <ul className="pictures">
        {ids.map((id, at) => {
          const file = files[at]?.data
          return (
            <li key={id}>
              <div className="picture">
                <span className="picture-frame">{file && <Picture file={file} size={40} />}</span>
                <span className="picture-name">{file?.filename ?? '…'}</span>
                <Group gap={2}>
                  <ActionIcon
                    variant="subtle"
                    color="gray"
                    size="sm"
                    disabled={at === 0}
                    aria-label={`${file?.filename}: earlier`}
                    onClick={() => set(moved(at, -1), 'Moved.')}
                  >
                    <ArrowLeft size={14} />
                  </ActionIcon>
                  <ActionIcon
                    variant="subtle"
                    color="gray"
                    size="sm"
                    disabled={at === ids.length - 1}
                    aria-label={`${file?.filename}: later`}
                    onClick={() => set(moved(at, 1), 'Moved.')}
                  >
                    <ArrowRight size={14} />
                  </ActionIcon>
                  <ActionIcon
                    variant="subtle"
                    color="gray"
                    size="sm"
                    aria-label={`${file?.filename}: take out`}
                    onClick={() =>
                      set(
                        ids.filter((one) => one !== id),
                        'Taken out; the file stays in the library.',
                      )
                    }
                  >
                    <X size={14} />
                  </ActionIcon>
                </Group>
              </div>
            </li>
          )
        })}
      </ul>
      <Modal opened={isChoosing} onClose={() => setChoosing(false)} title="Add files" size="xl">
        <SearchBox label="Search files" />
        <ul className="pictures after">
          {(found.data ?? []).map((file) => {
            const isIn = ids.includes(file.id)
            return (
              <li key={file.id}>
                <button
                  type="button"
                  className="picture"
                  aria-pressed={isIn}
                  onClick={() =>
                    set(
                      isIn ? ids.filter((one) => one !== file.id) : [...ids, file.id],
                      isIn ? `“${file.filename}” is taken out.` : `“${file.filename}” is added.`,
                    )
                  }
                >
                  <span className="picture-frame">
                    <Picture file={file} size={40} />
                  </span>
                  <span className="picture-name">
                    {isIn && <Check size={13} aria-label="in the catalog" />} {file.filename}
                  </span>
                </button>
              </li>
            )
          })}
        </ul>
        {found.data?.length === 0 && (
          <Text size="sm" c="dimmed">
            No file of that name. Upload it in the library first.
          </Text>
        )}
      </Modal>
    </Card>
  )
}

const kind: Kind = {
  path: 'media/catalogs',
  id: 'slug',
  at: 'files/catalogs',
  noun: 'catalog',
  plural: 'catalogs',
  icon: GalleryHorizontalEnd,
  about: 'Files in an order of yours, which apps show: avatars to choose from, banners, covers',
  empty: 'A catalog is an ordered choice of files that your app shows: avatars, banners, covers.',
  keyOf: (row) => String(row['slug']),
  columns: [
    {
      title: 'Catalog',
      show: (row) => (
        <>
          <ProjectLink to={`files/catalogs/${row['slug']}`}>{String(row['name'])}</ProjectLink>
          <span className="cell-sub mono">{String(row['slug'])}</span>
        </>
      ),
    },
    { title: 'Files', isNumber: true, show: (row) => idsOf(row).length },
    {
      title: 'Read',
      show: (row) => <Status value={row['is_public'] ? 'without a session' : 'by signed-in users'} meaning="none" />,
    },
    changedColumn,
  ],
  words: {
    name: { title: 'Name' },
    slug: { title: 'Slug', help: 'What apps ask for; it never changes', from: 'name' },
    is_public: { title: 'Apps read it before anybody signs in' },
    asset_ids: { isHidden: true },
  },
  facts: (row) => [
    [
      'Slug',
      <span key="slug" className="mono">
        {String(row['slug'])}
      </span>,
    ],
    ['Read', row['is_public'] ? 'without a session' : 'by signed-in users'],
  ],
  Detail: Files,
}
export const { List, New, One } = pagesOf(kind)
