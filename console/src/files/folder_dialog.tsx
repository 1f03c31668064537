import { Stack, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { createMediaFolder, updateMediaFolder } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { Dialog } from '../parts/drawer.tsx'
import { FormFoot } from '../parts/form_foot.tsx'
import { useProject } from '../parts/page.tsx'
import { done, useRefresh } from '../parts/states.tsx'
import { useUnsaved } from '../parts/unsaved.tsx'
import type { MediaFolder } from './data.ts'

const Form = ({
  folder,
  onClose,
  onMade,
}: {
  folder: MediaFolder | undefined
  onClose: () => void
  onMade: (id: string) => void
}) => {
  const { path } = useProject()
  const refresh = useRefresh()
  const [name, setName] = useState(folder?.name ?? '')
  const work = useMutation({
    mutationFn: () =>
      folder
        ? call(updateMediaFolder, { path: { ...path, folderId: folder.id }, body: { name } })
        : call(createMediaFolder, { path, body: { name } }),
    onSuccess: async ({ data }) => {
      done(folder ? 'The folder is renamed.' : `The folder “${name}” is there.`)
      onClose()
      onMade(data.id)
      await refresh()
    },
  })
  useUnsaved(name, work)
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        work.mutate()
      }}
    >
      <Stack gap="sm">
        <TextInput
          label="Name"
          required
          data-autofocus
          maxLength={200}
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
          autoComplete="off"
        />
        <FormFoot
          verb={folder ? 'Rename folder' : 'Create folder'}
          work={work}
          onCancel={onClose}
          isDisabled={name === ''}
        />
      </Stack>
    </form>
  )
}

/** A new folder, or another name for one. */
export const FolderDialog = ({
  folder,
  isOpen,
  onClose,
  onMade,
}: {
  folder: MediaFolder | undefined
  isOpen: boolean
  onClose: () => void
  onMade: (id: string) => void
}) => (
  <Dialog opened={isOpen} onClose={onClose} title={folder ? 'Rename folder' : 'New folder'}>
    {isOpen && <Form folder={folder} onClose={onClose} onMade={onMade} />}
  </Dialog>
)
