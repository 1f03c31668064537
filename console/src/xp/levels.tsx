import { ActionIcon, Button, Group, NumberInput, Skeleton, Stack, Text, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { Plus, Sparkles, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { callAny } from '../api.ts'
import { Bars } from '../parts/chart.tsx'
import { rewardWords } from '../parts/form/reward.ts'
import { RewardEditor } from '../parts/form/reward_editor.tsx'
import { Card, PageHead, useProject } from '../parts/page.tsx'
import { count, counted, done, Failure, useRefresh } from '../parts/states.tsx'
import { useAnswer } from '../parts/stats.tsx'
import { useXpStats } from './rules.tsx'

type Level = {
  readonly level: number
  readonly xp_required: number
  readonly name: string | null
  readonly icon_url: string | null
  readonly reward: unknown
}
const operation = '/v1/admin/projects/{projectId}/xp/levels'

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
      thousandSeparator=" "
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

const Generate = ({ onMade }: { onMade: (levels: readonly Level[]) => void }) => {
  const [size, setSize] = useState(20)
  const [base, setBase] = useState(100)
  const [exponent, setExponent] = useState(1.5)
  const made = Array.from({ length: size }, (_, n) => Math.round(base * n ** exponent))
  return (
    <Card title="Make a table">
      <Stack gap="sm">
        <NumberInput label="Levels" min={2} max={500} value={size} onChange={(next) => setSize(Number(next) || 2)} />
        <NumberInput
          label="XP of the second level"
          min={1}
          value={base}
          onChange={(next) => setBase(Number(next) || 1)}
        />
        <NumberInput
          label="Steepness"
          description="1 makes all levels equally far apart"
          min={0.5}
          max={5}
          step={0.1}
          value={exponent}
          onChange={(next) => setExponent(Number(next) || 1)}
        />
        <Text size="sm" c="dimmed">
          The last level needs {count(made.at(-1))} XP.
        </Text>
        <Button
          variant="default"
          leftSection={<Sparkles size={15} />}
          onClick={() =>
            onMade(
              made.map((xp_required, n) => ({ level: n + 1, xp_required, name: null, icon_url: null, reward: null })),
            )
          }
        >
          Make {counted(size, 'level')}
        </Button>
      </Stack>
    </Card>
  )
}

const Editor = ({ before, onClose }: { before: readonly Level[]; onClose: () => void }) => {
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

/** From how much XP on which level is reached, and how many users are there. */
export const Page = () => {
  const [isEditing, setEditing] = useState(false)
  const { data: levels, error, refetch } = useAnswer<readonly Level[]>(`GET ${operation}`)
  const stats = useXpStats()
  const usersAt = new Map(stats.data?.level_distribution.map(({ level, users }) => [level, users]))
  return (
    <>
      <PageHead
        title="Levels"
        about="From how much XP on users reach which level"
        actions={!isEditing && levels && <Button onClick={() => setEditing(true)}>Edit levels</Button>}
      />
      {error ? (
        <Failure error={error} onRetry={refetch} />
      ) : !levels ? (
        <Skeleton h={320} />
      ) : isEditing ? (
        <Editor before={levels} onClose={() => setEditing(false)} />
      ) : (
        <Stack gap="md">
          <Bars
            title="Users by level"
            of="Users"
            by="Level"
            bars={stats.data && levels.map(({ level }) => ({ label: String(level), value: usersAt.get(level) ?? 0 }))}
            error={stats.error}
            onRetry={stats.refetch}
          />
          <div className="card" data-flush>
            <table className="table" data-stack aria-label="Levels">
              <thead>
                <tr>
                  <th scope="col">Level</th>
                  <th scope="col" data-number>
                    XP needed
                  </th>
                  <th scope="col" data-number>
                    Users
                  </th>
                  <th scope="col">Reward</th>
                </tr>
              </thead>
              <tbody>
                {levels.map(({ level, xp_required, name, reward }) => (
                  <tr key={level}>
                    <td>{name ? `${level}: ${name}` : level}</td>
                    <td data-number data-label="XP needed">
                      {count(xp_required)}
                    </td>
                    <td data-number data-label="Users">
                      {count(usersAt.get(level) ?? 0)}
                    </td>
                    <td data-label="Reward">{rewardWords(reward) ?? '—'}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          {levels.length === 1 && (
            <Group>
              <Text size="sm" c="dimmed">
                There is one level. “Edit levels” makes a table of many in one step.
              </Text>
            </Group>
          )}
        </Stack>
      )}
    </>
  )
}
