import { Alert, Button, FileButton, Group, Modal, Progress, Stack, Text } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { FileUp } from 'lucide-react'
import { useEffect, useState } from 'react'
import { accessToken, callAny, type Row } from '../api.ts'
import { useProject } from '../parts/page.tsx'
import { count, counted, done, Failure, failed, useRefresh } from '../parts/states.tsx'
import type { Collection } from './data.ts'
import { type Prepared, prepared } from './import_records.ts'
import { UserSelect } from './names.tsx'

const pathOf = (projectId: string, name: string) => `/v1/admin/projects/${projectId}/collections/${name}`

/** Saves a file of the browser under a name. */
const save = (blob: Blob, filename: string) => {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(blob)
  link.download = filename
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000)
}

export const exportRows = async (projectId: string, name: string, format: 'csv' | 'ndjson'): Promise<void> => {
  try {
    const reply = await fetch(`${pathOf(projectId, name)}/export?format=${format}`, {
      headers: { authorization: `Bearer ${accessToken()}` },
    })
    if (!reply.ok) throw new Error(((await reply.json()) as { error: { message: string } }).error.message)
    save(await reply.blob(), `${name}.${format === 'csv' ? 'csv' : 'jsonl'}`)
    done(`The rows of ${name} are saved as a file.`)
  } catch (error) {
    failed(error)
  }
}

type Result = {
  readonly inserted: number
  readonly failed: number
  readonly errors: readonly { readonly line: number; readonly message: string }[]
}

const Outcome = ({ operationId, onClose }: { operationId: string; onClose: () => void }) => {
  const { path } = useProject()
  const refresh = useRefresh()
  const { data } = useQuery({
    queryKey: ['operation', operationId],
    refetchInterval: ({ state }) => (isOver(state.data) ? false : 700),
    queryFn: async () => {
      const { data: operation } = await callAny('GET /v1/admin/projects/{projectId}/operations/{operationId}', {
        path: { ...path, operationId },
      })
      return operation as Row
    },
  })
  const isReady = isOver(data)
  useEffect(() => {
    if (isReady) void refresh()
  }, [isReady])
  const result = data?.['result'] as Result | null | undefined
  if (!isReady)
    return (
      <Stack gap="sm">
        <Text size="sm">The rows are being added…</Text>
        <Progress value={100} animated aria-label="Importing" />
      </Stack>
    )
  return (
    <Stack gap="sm">
      <Alert
        color={result && result.failed === 0 ? 'leaf' : 'yellow'}
        title={`${counted(result?.inserted ?? 0, 'row')} added`}
      >
        {result?.failed ? `${counted(result.failed, 'row')} refused:` : 'None was refused.'}
        {result?.errors.slice(0, 8).map(({ line, message }) => (
          <Text key={line} size="sm">
            Line {count(line)}: {message}
          </Text>
        ))}
      </Alert>
      <Group justify="flex-end">
        <Button onClick={onClose}>Show the rows</Button>
      </Group>
    </Stack>
  )
}

const isOver = (operation: Row | undefined) =>
  ['succeeded', 'failed', 'cancelled'].includes(String(operation?.['status']))

/** Rows from a file, by choosing or dropping it. */
export const ImportDialog = ({
  collection,
  isOpen,
  onClose,
}: {
  collection: Collection
  isOpen: boolean
  onClose: () => void
}) => {
  const { projectId } = useProject()
  const [file, setFile] = useState<{ readonly name: string; readonly text: string }>()
  const [owner, setOwner] = useState<string>()
  const [isOver, setOver] = useState(false)
  const [operation, setOperation] = useState<string>()
  const isGroup = collection.owner_scope === 'group'
  const read = async (chosen: File | null | undefined) => {
    if (chosen) setFile({ name: chosen.name, text: await chosen.text() })
  }
  let found: Prepared | undefined
  let problem: string | undefined
  try {
    if (file) found = prepared(file.name, file.text, owner, isGroup ? 'group_id' : 'user_id')
  } catch (error) {
    problem = error instanceof Error ? error.message : 'This is neither CSV nor JSON.'
  }
  const work = useMutation({
    mutationFn: async () => {
      const reply = await fetch(`${pathOf(projectId, collection.name)}/import?format=${found?.format}`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${accessToken()}`,
          'content-type': found?.format === 'csv' ? 'text/csv' : 'application/x-ndjson',
        },
        body: found?.text ?? '',
      })
      const body = (await reply.json()) as { data?: { operation_id: string }; error?: { message: string } }
      if (!body.data) throw new Error(body.error?.message ?? 'The file was refused.')
      return body.data.operation_id
    },
    onSuccess: setOperation,
  })
  const close = () => {
    setFile(undefined)
    setOperation(undefined)
    work.reset()
    onClose()
  }
  return (
    <Modal opened={isOpen} onClose={close} title={`Import into ${collection.name}`}>
      {operation ? (
        <Outcome operationId={operation} onClose={close} />
      ) : (
        <Stack gap="sm">
          <section
            aria-label="File"
            className="drop"
            data-over={isOver || undefined}
            onDragOver={(event) => {
              event.preventDefault()
              setOver(true)
            }}
            onDragLeave={() => setOver(false)}
            onDrop={(event) => {
              event.preventDefault()
              setOver(false)
              void read(event.dataTransfer.files[0])
            }}
          >
            <FileUp size={22} aria-hidden />
            <Text size="sm">
              {file
                ? `${file.name}: ${counted(found?.lines ?? 0, 'row')}`
                : 'Drop a CSV or JSON file here, up to 50 MB'}
            </Text>
            <FileButton onChange={read} accept=".csv,.json,.jsonl,.ndjson,text/csv,application/json">
              {(props) => (
                <Button {...props} variant="default" size="xs">
                  Choose a file
                </Button>
              )}
            </FileButton>
          </section>
          <Text size="xs" c="dimmed">
            The first line of a CSV file names the columns; JSON is a list of rows or one row a line. A column that is
            missing gets its default.
          </Text>
          {found && !found.hasOwner && !isGroup && (
            <UserSelect
              label="Owner of the rows"
              description="The file does not say whose they are"
              required
              value={owner}
              onChange={setOwner}
            />
          )}
          {found && !found.hasOwner && isGroup && (
            <Alert color="yellow">Each row has to name its group in a column group_id.</Alert>
          )}
          {problem && <Alert color="red">{problem}</Alert>}
          {work.error && <Failure error={work.error} />}
          <Group justify="flex-end" gap="xs">
            <Button variant="default" onClick={close}>
              Cancel
            </Button>
            <Button
              disabled={!found || found.lines === 0 || (!found.hasOwner && !owner)}
              loading={work.isPending}
              onClick={() => work.mutate()}
            >
              {found ? `Import ${counted(found.lines, 'row')}` : 'Import'}
            </Button>
          </Group>
        </Stack>
      )}
    </Modal>
  )
}
