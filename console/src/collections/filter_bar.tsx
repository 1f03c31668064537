import { Button, Checkbox, CloseButton, Group, Popover, Select, Stack, TextInput } from '@mantine/core'
import { Columns3, ListFilter } from 'lucide-react'
import { useState } from 'react'
import { type CollectionColumn, isNumeric, titleOfColumn } from './data.ts'
import { type Condition, conditionWords, opsOf } from './filters.ts'
import { UserName, UserSelect } from './names.tsx'

const Value = ({
  column,
  value,
  onChange,
}: {
  column: CollectionColumn
  value: string
  onChange: (value: string) => void
}) => {
  const choices =
    column.type === 'boolean'
      ? [
          { value: 'true', label: 'yes' },
          { value: 'false', label: 'no' },
        ]
      : column.enum?.map((choice) => ({ value: String(choice), label: String(choice) }))
  if (column.name === 'user_id')
    return <UserSelect label="Value" value={value || undefined} onChange={(id) => onChange(id ?? '')} />
  if (choices)
    return <Select label="Value" data={choices} value={value || null} onChange={(next) => onChange(next ?? '')} />
  const kind = column.type === 'date' ? 'date' : column.type === 'timestamptz' ? 'datetime-local' : 'text'
  return (
    <TextInput
      label="Value"
      type={kind}
      inputMode={isNumeric(column.type) ? 'decimal' : undefined}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
      autoComplete="off"
    />
  )
}

const AddFilter = ({
  columns,
  onAdd,
}: {
  columns: readonly CollectionColumn[]
  onAdd: (condition: Condition) => void
}) => {
  const [isOpen, setOpen] = useState(false)
  const [name, setName] = useState(columns[0]?.name ?? '')
  const [chosen, setOp] = useState<string>()
  const [value, setValue] = useState('')
  const column = columns.find((one) => one.name === name) ?? columns[0]
  if (!column) return null
  const ops = opsOf(column)
  const op = ops.find((one) => one.op === chosen) ?? ops[0]
  return (
    <Popover opened={isOpen} onChange={setOpen} position="bottom-start" shadow="md" trapFocus width={280}>
      <Popover.Target>
        <Button variant="default" size="xs" leftSection={<ListFilter size={14} />} onClick={() => setOpen(!isOpen)}>
          Filter
        </Button>
      </Popover.Target>
      <Popover.Dropdown>
        <form
          onSubmit={(event) => {
            event.preventDefault()
            if (!op || (op.needsValue && value === '')) return
            onAdd({ column: column.name, op: op.op, value: op.needsValue ? value : '' })
            setValue('')
            setOpen(false)
          }}
        >
          <Stack gap="xs">
            <Select
              label="Column"
              data={columns.map((one) => ({ value: one.name, label: titleOfColumn(one.name) }))}
              allowDeselect={false}
              value={column.name}
              comboboxProps={{ withinPortal: false }}
              onChange={(next) => {
                setName(next ?? '')
                setOp(undefined)
                setValue('')
              }}
            />
            <Select
              label="Condition"
              data={ops.map((one) => ({ value: one.op, label: one.words }))}
              allowDeselect={false}
              value={op?.op ?? null}
              comboboxProps={{ withinPortal: false }}
              onChange={(next) => setOp(next ?? undefined)}
            />
            {op?.needsValue && <Value column={column} value={value} onChange={setValue} />}
            <Button type="submit" size="xs" disabled={op?.needsValue === true && value === ''}>
              Apply filter
            </Button>
          </Stack>
        </form>
      </Popover.Dropdown>
    </Popover>
  )
}

/** The conditions of the grid as chips, and which columns it shows. */
export const FilterBar = ({
  columns,
  conditions,
  onConditions,
  hidden,
  onHidden,
}: {
  columns: readonly CollectionColumn[]
  conditions: readonly Condition[]
  onConditions: (conditions: readonly Condition[]) => void
  hidden: readonly string[]
  onHidden: (hidden: readonly string[]) => void
}) => (
  <Group gap={6}>
    <AddFilter columns={columns} onAdd={(condition) => onConditions([...conditions, condition])} />
    <Popover position="bottom-start" shadow="md" trapFocus>
      <Popover.Target>
        <Button variant="default" size="xs" leftSection={<Columns3 size={14} />}>
          Columns{' '}
          {hidden.length > 0
            ? `${columns.length - columns.filter(({ name }) => hidden.includes(name)).length} of ${columns.length}`
            : ''}
        </Button>
      </Popover.Target>
      <Popover.Dropdown>
        <Stack gap={8}>
          {columns.map(({ name }) => (
            <Checkbox
              key={name}
              size="sm"
              label={titleOfColumn(name)}
              checked={!hidden.includes(name)}
              onChange={(event) =>
                onHidden(event.currentTarget.checked ? hidden.filter((one) => one !== name) : [...hidden, name])
              }
            />
          ))}
        </Stack>
      </Popover.Dropdown>
    </Popover>
    {conditions.map((condition, at) => (
      <span className="chip" key={`${condition.column} ${condition.op} ${condition.value}`}>
        {condition.column === 'user_id' ? (
          <>
            Owner {condition.op === 'ne' ? 'is not' : 'is'} <UserName id={condition.value} />
          </>
        ) : (
          conditionWords(columns, condition)
        )}
        <CloseButton
          size="xs"
          aria-label={`Remove the filter ${conditionWords(columns, condition)}`}
          onClick={() => onConditions(conditions.filter((_, n) => n !== at))}
        />
      </span>
    ))}
  </Group>
)
