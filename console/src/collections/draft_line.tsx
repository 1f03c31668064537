import { ActionIcon, Collapse, Group, Stack, Switch } from '@mantine/core'
import { Settings2, Trash2 } from 'lucide-react'
import { useState } from 'react'
import type { Draft } from './column_draft.ts'
import { Bounds, NameInput, PresetInput, TypeSelect } from './column_inputs.tsx'

/** A column of a new collection, as one line; what is rare opens below it. */
export const DraftLine = ({
  draft,
  onChange,
  onRemove,
  at,
}: {
  draft: Draft
  onChange: (draft: Draft) => void
  onRemove: () => void
  at: number
}) => {
  const [isOpen, setOpen] = useState(false)
  return (
    <div className="draft">
      <div className="draft-line">
        <NameInput draft={draft} onChange={onChange} label={`Name of column ${at}`} />
        <TypeSelect draft={draft} onChange={onChange} label={`What column ${at} holds`} />
        <Switch
          label="Needed"
          checked={draft.isNeeded}
          onChange={(event) => onChange({ ...draft, isNeeded: event.currentTarget.checked })}
        />
        <Group gap={2} wrap="nowrap">
          <ActionIcon
            variant="subtle"
            color="gray"
            aria-label={`More about column ${at}`}
            aria-expanded={isOpen}
            onClick={() => setOpen(!isOpen)}
          >
            <Settings2 size={16} />
          </ActionIcon>
          <ActionIcon variant="subtle" color="gray" aria-label={`Remove column ${at}`} onClick={onRemove}>
            <Trash2 size={16} />
          </ActionIcon>
        </Group>
      </div>
      <Collapse expanded={isOpen}>
        <Stack gap="sm" py="sm">
          <PresetInput draft={draft} onChange={onChange} />
          <Bounds draft={draft} onChange={onChange} />
        </Stack>
      </Collapse>
    </div>
  )
}
