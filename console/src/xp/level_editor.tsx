import { ActionIcon, Button, NumberInput, Stack, Text, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { Plus, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { callAny } from '../api.ts'
import { RewardEditor } from '../parts/form/reward_editor.tsx'
import { Card, useProject } from '../parts/page.tsx'
import { done, Failure, useRefresh } from '../parts/states.tsx'
import { useUnsaved } from '../parts/unsaved.tsx'
import { type Level, operation } from './level_data.ts'
import { Generate } from './level_maker.tsx'

const LevelRow = ({
  level,
  onChange,
  onRemove,
}: {
  level: Level
  onChange: (next: Level) => void
  onRemove: (() => void) | undefined
}) => (
  <fieldset className="condition" aria-label={`Level ${level.level}`}>
    <NumberInput
      aria-label={`XP of level ${level.level}`}
      leftSection={<Text size="xs">{level.level}</Text>}
      suffix=" XP"
      min={0}
      disabled={level.level === 1}
      thousandSeparator=","
      value={level.xp_required}
      onChange={(next) => onChange({ ...level, xp_required: Number(next) || 0 })}
    />
    <TextInput
      aria-label={`Name of level ${level.level}`}
      placeholder="Name"
      value={level.name ?? ''}
      onChange={(event) => onChange({ ...level, name: event.currentTarget.value || null })}
    />
    {onRemove && (
      <ActionIcon variant="subtle" color="gray" size={36} aria-label={`Remove level ${level.level}`} onClick={onRemove}>
        <Trash2 size={15} />
      </ActionIcon>
    )}
    {level.level > 1 && (
      <div className="grow-all">
        <RewardEditor
          label=""
          help={undefined}
          value={level.reward}
          onChange={(next) => onChange({ ...level, reward: next ?? null })}
          error={undefined}
          beside={{}}
        />
      </div>
    )}
  </fieldset>
)

/** The table of levels, row by row. */
export const LevelEditor = ({ before, onClose }: { before: readonly Level[]; onClose: () => void }) => {
  const { path } = useProject()
  const refresh = useRefresh()
  const [levels, setLevels] = useState(before)
  const [made, setMade] = useState(0)
  const put = (table: readonly Level[]) => callAny(`PUT ${operation}`, { path, body: { levels: table } })
  const work = useMutation({
    mutationFn: () => put(levels),
    onSuccess: async () => {
      onClose()
      done('The levels are saved.', () => put(before).then(refresh))
      await refresh()
    },
  })
  useUnsaved(levels, work)
  const last = levels.at(-1)
  return (
    <div className="split">
      <Card title="Levels">
        <Stack gap="sm">
          {levels.map((level, at) => (
            <LevelRow
              key={`${made} ${level.level}`}
              level={level}
              onChange={(next) => setLevels(levels.map((one, n) => (n === at ? next : one)))}
              onRemove={at > 0 && at === levels.length - 1 ? () => setLevels(levels.slice(0, -1)) : undefined}
            />
          ))}
          <div>
            <Button
              variant="default"
              size="xs"
              leftSection={<Plus size={14} />}
              onClick={() =>
                setLevels([
                  ...levels,
                  {
                    level: levels.length + 1,
                    xp_required: Math.round((last?.xp_required ?? 0) * 1.3) + 100,
                    name: null,
                    icon_url: null,
                    reward: null,
                  },
                ])
              }
            >
              Add level
            </Button>
          </div>
          {work.error && <Failure error={work.error} />}
          <div className="savebar">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button loading={work.isPending} onClick={() => work.mutate()}>
              Save levels
            </Button>
          </div>
        </Stack>
      </Card>
      <Generate
        onMade={(next) => {
          setLevels(
            next.map((level, n) => ({ ...level, name: levels[n]?.name ?? null, reward: levels[n]?.reward ?? null })),
          )
          setMade(made + 1)
        }}
      />
    </div>
  )
}
