import { Group, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Check, X } from 'lucide-react'
import { useState } from 'react'
import { explainSegmentMember } from '../../../sdk/src/generated/admin.ts'
import type { Segment } from '../../../sdk/src/generated/schemas.ts'
import { call } from '../api.ts'
import { Card, useProject } from '../parts/page.tsx'
import { Failure } from '../parts/states.tsx'
import { UserSelect } from '../parts/users.tsx'
import { leafWords } from './leaf_words.ts'
import { groupOf, placesOf } from './rules.ts'
import { useNames } from './words.tsx'

const shownActual = (value: unknown): string => {
  if (value === null || value === undefined) return 'nothing'
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (typeof value === 'string' && /^\d{4}-\d\d-\d\dT/.test(value))
    return new Date(value).toLocaleString('en', { dateStyle: 'medium', timeStyle: 'short' })
  return Array.isArray(value) ? value.join(', ') : String(value)
}

/** Why one user belongs or does not, condition by condition. */
export const Explain = ({ segment }: { segment: Segment }) => {
  const { path } = useProject()
  const [userId, setUserId] = useState<string>()
  const group = groupOf(segment.rules)
  const nameOfReference = useNames(group)
  const leaves = new Map(placesOf(group))
  const { data, error } = useQuery({
    queryKey: ['explain', path.projectId, segment.id, userId],
    enabled: userId !== undefined,
    queryFn: () => call(explainSegmentMember, { path: { ...path, idOrKey: segment.id, userId: userId ?? '' } }),
  })
  return (
    <Card title="Why is somebody in it?">
      <Stack gap="sm">
        <UserSelect placeholder="Choose a user" value={userId} onChange={setUserId} />
        {error && <Failure error={error} />}
        {data && userId && (
          <>
            <Text size="sm" fw={600} role="status">
              {data.data.member ? 'Belongs to the segment' : 'Does not belong'}
            </Text>
            {data.data.leaves.map(({ path: place, matched, actual }) => {
              const leaf = leaves.get(place)
              return (
                <Group key={place} gap={8} wrap="nowrap" align="flex-start">
                  {matched ? (
                    <Check size={16} color="var(--good)" aria-label="holds" className="no-shrink" />
                  ) : (
                    <X size={16} color="var(--bad)" aria-label="does not hold" className="no-shrink" />
                  )}
                  <Text size="sm">
                    {leaf ? leafWords(leaf, nameOfReference) : place}
                    <Text span c="dimmed" size="sm">
                      , has {shownActual(actual)}
                    </Text>
                  </Text>
                </Group>
              )
            })}
          </>
        )}
      </Stack>
    </Card>
  )
}
