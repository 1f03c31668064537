import { Button, Stack, Text } from '@mantine/core'
import { FlaskConical } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import type { Row } from '../api.ts'
import { Drawer } from './drawer.tsx'
import type { FieldWords } from './form/field.ts'
import { OperationForm } from './form/form.tsx'

/** A button that tries something on stored events, writing nothing, and shows what would come of it. */
export const Simulate = ({
  title,
  about,
  operation,
  path,
  preset,
  words,
  children,
}: {
  title: string
  about: string
  operation: string
  path: Readonly<Record<string, string>>
  preset?: Row
  words?: Readonly<Record<string, FieldWords>>
  /** What is shown of the answer. */
  children: (result: Row) => ReactNode
}) => {
  const [isOpen, setOpen] = useState(false)
  const [result, setResult] = useState<Row>()
  return (
    <>
      <Button
        variant="default"
        leftSection={<FlaskConical size={15} />}
        onClick={() => {
          setResult(undefined)
          setOpen(true)
        }}
      >
        Simulate
      </Button>
      <Drawer opened={isOpen} onClose={() => setOpen(false)} title={title}>
        <Stack gap="md">
          <Text size="sm" c="dimmed">
            {about}
          </Text>
          {result && <div role="status">{children(result)}</div>}
          <OperationForm
            operation={operation}
            path={path}
            preset={preset ?? {}}
            words={words ?? {}}
            verb="Simulate"
            onDone={(data) => setResult(data as Row)}
          />
        </Stack>
      </Drawer>
    </>
  )
}

/** Values before and after, below each other. */
export const Compared = ({
  rows,
  heads = ['Now', 'Then'],
}: {
  rows: readonly (readonly [string, ReactNode, ReactNode])[]
  heads?: readonly [string, string]
}) => (
  <table className="table">
    <thead>
      <tr>
        <th scope="col">
          <span className="only-read">Figure</span>
        </th>
        {heads.map((head) => (
          <th key={head} scope="col" data-number>
            {head}
          </th>
        ))}
      </tr>
    </thead>
    <tbody>
      {rows.map(([name, before, after]) => (
        <tr key={name}>
          <th scope="row">{name}</th>
          <td data-number>{before}</td>
          <td data-number>{after}</td>
        </tr>
      ))}
    </tbody>
  </table>
)
