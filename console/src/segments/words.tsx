import { useQuery } from '@tanstack/react-query'
import { Fragment } from 'react'
import { listChallengeDefinitions, listSegments } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { useProject } from '../parts/page.tsx'
import { leafWords } from './leaf_words.ts'
import { type Group, groupOf, isGroup } from './rules.ts'

/** Names of what conditions refer to by an identifier; keys are words already. */
export const useNames = (group: Group) => {
  const { path } = useProject()
  const text = JSON.stringify(group)
  const segments = useQuery({
    queryKey: ['segments', path.projectId],
    enabled: text.includes('"segment_id"'),
    queryFn: () => call(listSegments, { path, query: { limit: 100 } }),
  })
  const challenges = useQuery({
    queryKey: ['challenges', path.projectId],
    enabled: text.includes('"challenge"'),
    queryFn: () => call(listChallengeDefinitions, { path, query: { limit: 100 } }),
  })
  return (reference: string, value: string): string =>
    (reference === 'segment_id'
      ? segments.data?.data.find(({ id }) => id === value)?.name
      : reference === 'challenge_id'
        ? challenges.data?.data.find(({ id }) => id === value)?.name
        : undefined) ?? value
}

const joined = (group: Group, nameOf: ReturnType<typeof useNames>): string => {
  const items = group.items.map((item) => (isGroup(item) ? `(${joined(item, nameOf)})` : leafWords(item, nameOf)))
  if (group.join === 'none') return `not ${items.join(' and not ')}`
  return items.join(group.join === 'and' ? ' and ' : ' or ')
}

/** The conditions of a segment as a sentence. */
export const RuleWords = ({ rules }: { rules: unknown }) => {
  const group = groupOf(rules)
  const nameOf = useNames(group)
  return <Fragment>{group.items.length === 0 ? 'everybody' : joined(group, nameOf)}</Fragment>
}
