import { Button, FileButton, Group, Stack, Text, Textarea } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { Upload } from 'lucide-react'
import { useState } from 'react'
import { callAny, type Row } from '../api.ts'
import { Drawer } from '../parts/drawer.tsx'
import { useProject } from '../parts/page.tsx'
import { counted, done, Failure, useRefresh } from '../parts/states.tsx'
import { useUnsaved } from '../parts/unsaved.tsx'

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** Lines of a user and a score, separated by a comma, a semicolon or a tab; a head is left out. */
const parsed = (text: string) => {
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== '')
  const entries: { app_user_id: string; score: number }[] = []
  const wrong: number[] = []
  lines.forEach((line, at) => {
    const [id = '', score = ''] = line.split(/[,;\t]/).map((cell) => cell.trim().replace(/^"|"$/g, ''))
    if (uuid.test(id) && score !== '' && Number.isFinite(Number(score))) {
      entries.push({ app_user_id: id, score: Number(score) })
    } else if (at > 0 || uuid.test(id)) wrong.push(at + 1)
  })
  return { entries, wrong }
}

type Answer = {
  readonly imported: number
  readonly failed: number
  readonly errors: readonly { readonly index: number; readonly message: string }[]
}

const Form = ({ row, onClose }: { row: Row; onClose: () => void }) => {
  const { path } = useProject()
  const refresh = useRefresh()
  const [text, setText] = useState('')
  const { entries, wrong } = parsed(text)
  const work = useMutation({
    mutationFn: async () => {
      const { data } = await callAny('POST /v1/admin/projects/{projectId}/leaderboards/{idOrKey}/entries/import', {
        path: { ...path, idOrKey: row['id'] },
        body: { entries },
      })
      return data as Answer
    },
    onSuccess: async ({ imported, failed }) => {
      await refresh()
      if (failed > 0) return
      onClose()
      done(`${counted(imported, 'score')} imported.`)
    },
  })
  const refused = work.data && work.data.failed > 0 ? work.data : undefined
  // lines that were refused are still to be mended
  useUnsaved(text, { isPending: work.isPending, isSuccess: work.isSuccess && !refused })
  return (
    <Stack gap="sm">
      <Text size="sm" c="dimmed">
        A table with the id of a user and a score in each line, from a file or copied from a spreadsheet. Scores of the
        current run are replaced; at most 10,000 lines. Ids of users stand on their pages, and in exports of users.
      </Text>
      <div>
        <FileButton accept=".csv,.tsv,.txt,text/csv" onChange={async (file) => setText((await file?.text()) ?? '')}>
          {(props) => (
            <Button {...props} variant="default" size="xs" leftSection={<Upload size={14} />}>
              Choose a file
            </Button>
          )}
        </FileButton>
      </div>
      <Textarea
        label="Users and scores"
        placeholder="01a21c5c-c899-7b5a-a245-639fe842c107, 190"
        rows={10}
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
        error={
          wrong.length > 0
            ? `${counted(wrong.length, 'line')} without a user and a score: ${wrong.slice(0, 5).join(', ')}`
            : undefined
        }
      />
      {refused && (
        <Text size="sm" c="var(--bad)" role="alert">
          {counted(refused.imported, 'score')} imported, {refused.failed} refused:{' '}
          {refused.errors
            .slice(0, 3)
            .map(({ index, message }) => `line ${index + 1}: ${message}`)
            .join('; ')}
        </Text>
      )}
      {work.error && <Failure error={work.error} />}
      <Group justify="flex-end">
        <Button variant="default" onClick={onClose}>
          Cancel
        </Button>
        <Button
          loading={work.isPending}
          disabled={entries.length === 0 || wrong.length > 0}
          onClick={() => work.mutate()}
        >
          {entries.length > 0 ? `Import ${counted(entries.length, 'score')}` : 'Import'}
        </Button>
      </Group>
    </Stack>
  )
}

/** Sets the scores of many users from a table. */
export const ImportScores = ({ row }: { row: Row }) => {
  const [isOpen, setOpen] = useState(false)
  const close = () => setOpen(false)
  return (
    <>
      <Button variant="default" onClick={() => setOpen(true)}>
        Import
      </Button>
      <Drawer opened={isOpen} onClose={close} title="Import scores">
        <Form row={row} onClose={close} />
      </Drawer>
    </>
  )
}
