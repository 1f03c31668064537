import { Button } from '@mantine/core'
import { Archive } from 'lucide-react'
import { useState } from 'react'
import { emptyMediaBucket } from '../../../sdk/src/generated/admin.ts'
import { call, type Row } from '../api.ts'
import { changedColumn } from '../parts/definitions/columns.tsx'
import type { Kind } from '../parts/definitions/kind.ts'
import { pagesOf } from '../parts/definitions/pages.tsx'
import { Confirm } from '../parts/dialogs.tsx'
import { ProjectLink, useProject } from '../parts/page.tsx'
import { Status } from '../parts/status.tsx'
import { bytes } from './data.ts'

const sizeOf = (row: Row) => bytes(Number(row['file_size_limit'] ?? 50 * 1024 * 1024))
const typesOf = (row: Row) => ((row['allowed_mime_types'] as readonly string[] | null) ?? ['all']).join(', ')

/** Deletes every file of the bucket: only an empty bucket can be deleted. */
const EmptyBucket = ({ row }: { row: Row }) => {
  const { path } = useProject()
  const [isOpen, setOpen] = useState(false)
  const name = String(row['name'])
  return (
    <>
      <Button variant="default" onClick={() => setOpen(true)}>
        Empty bucket
      </Button>
      <Confirm
        title="Empty bucket"
        verb="Delete all files"
        said="The files are deleted."
        isOpen={isOpen}
        onClose={() => setOpen(false)}
        typed={name}
        run={() => call(emptyMediaBucket, { path: { ...path, name } })}
      >
        All files of <span className="mono">{name}</span> go for good. The bucket stays.
      </Confirm>
    </>
  )
}

const kind: Kind = {
  path: 'media/buckets',
  id: 'name',
  at: 'files/buckets',
  noun: 'bucket',
  plural: 'buckets',
  icon: Archive,
  about: 'Places for files of supabase-js, each public or private, with limits of its own',
  empty: 'A bucket holds files that apps store with supabase-js: avatars, invoices, exports.',
  keyOf: (row) => String(row['name']),
  columns: [
    {
      title: 'Bucket',
      show: (row) => <ProjectLink to={`files/buckets/${row['name']}`}>{String(row['name'])}</ProjectLink>,
    },
    {
      title: 'Read',
      show: (row) => <Status value={row['is_public'] ? 'by anybody' : 'by users and server keys'} meaning="none" />,
    },
    { title: 'Largest file', isNumber: true, show: sizeOf },
    { title: 'Types', show: typesOf },
    changedColumn,
  ],
  words: { is_public: { title: 'Public', help: 'Anybody reads its files, at lasting addresses.' } },
  facts: (row) => [
    ['Read', row['is_public'] ? 'by anybody, at a lasting address' : 'by users in their folder, and by server keys'],
    ['Largest file', sizeOf(row)],
    ['Types', typesOf(row)],
  ],
  Buttons: EmptyBucket,
}
export const { List, New, One } = pagesOf(kind)
