import { useQuery } from '@tanstack/react-query'
import { getCollection, listCollections, listRoles } from '../../../sdk/src/generated/admin.ts'
import type { Collection } from '../../../sdk/src/generated/schemas.ts'
import { call } from '../api.ts'
import { useProject } from '../parts/page.tsx'
import type { CollectionColumn, ColumnType } from './types.ts'

export * from './types.ts'
export type { Collection }
export type Scope = 'user' | 'group'

/** Below the project: the parts of one collection. */
export const one = '/v1/admin/projects/{projectId}/collections/{name}'

export const useCollections = () => {
  const { path } = useProject()
  return useQuery({
    queryKey: ['collections', path.projectId],
    queryFn: async () => (await call(listCollections, { path, query: { limit: 200 } })).data,
  })
}

export const useCollection = (name: string) => {
  const { path } = useProject()
  return useQuery({
    queryKey: ['collection', path.projectId, name],
    queryFn: async () => (await call(getCollection, { path: { ...path, name } })).data,
  })
}

export const useRoles = () => {
  const { path } = useProject()
  return useQuery({
    queryKey: ['roles', path.projectId],
    queryFn: async () => (await call(listRoles, { path, query: { limit: 100 } })).data,
  })
}

/** What people call the types of columns. */
export const typeWords: Readonly<Record<ColumnType, string>> = {
  text: 'Text',
  integer: 'Whole number',
  bigint: 'Large whole number',
  numeric: 'Decimal number',
  double: 'Floating number',
  boolean: 'Yes or no',
  date: 'Date',
  timestamptz: 'Date and time',
  uuid: 'Identifier or reference',
  jsonb: 'Structured (JSON)',
  vector: 'Vector for AI search',
  'text[]': 'List of texts',
  'integer[]': 'List of whole numbers',
  'bigint[]': 'List of large numbers',
  'numeric[]': 'List of decimals',
  'boolean[]': 'List of yes or no',
  'uuid[]': 'List of identifiers',
}
const typeChoices: readonly { readonly group: string; readonly items: readonly ColumnType[] }[] = [
  { group: 'Common', items: ['text', 'integer', 'numeric', 'boolean', 'date', 'timestamptz', 'uuid'] },
  { group: 'Lists', items: ['text[]', 'integer[]', 'bigint[]', 'numeric[]', 'boolean[]', 'uuid[]'] },
  { group: 'Special', items: ['jsonb', 'vector', 'bigint', 'double'] },
]
export const typeData = typeChoices.map(({ group, items }) => ({
  group,
  items: items.map((value) => ({ value, label: typeWords[value] })),
}))

/** The columns that the server sets, as columns of the same shape. */
const system = (name: string, type: ColumnType): CollectionColumn => ({
  name,
  graphql_name: null,
  type,
  nullable: false,
  default: null,
  unique: false,
  max_length: null,
  min: null,
  max: null,
  enum: null,
  references: null,
  dimensions: null,
  moderated: false,
})
/** Every column of a row: the collection's own, then those of the server. */
export const columnsOf = (collection: Collection): readonly CollectionColumn[] => [
  ...collection.columns,
  system('user_id', 'uuid'),
  ...(collection.owner_scope === 'group' ? [system('group_id', 'uuid')] : []),
  system('created_at', 'timestamptz'),
  system('updated_at', 'timestamptz'),
  system('id', 'uuid'),
]

/** `role:moderator` as a sentence. */
export const policySentence = (verb: 'read' | 'write', policy: string, scope: string): string => {
  const act = verb === 'read' ? 'reads' : 'changes'
  const acts = verb === 'read' ? 'read' : 'change'
  const [kind, about] = policy.split(':')
  if (kind === 'public') return 'Everyone who is signed in reads every row'
  if (kind === 'authenticated') return 'Everyone who is signed in changes every row, and adds rows of their own'
  if (kind === 'role') return `Users with the role “${about}” ${acts} every row`
  if (kind === 'member')
    return about && about !== 'viewer'
      ? `Members of the row's group with the rank ${about} or higher ${acts} it`
      : `Every member of the row's group ${act} it`
  return scope === 'group' ? `The member who wrote a row ${act} it` : `Its owner alone ${act} a row`
}
export const accessOf = ({
  read_policy,
  write_policy,
  owner_scope,
}: Pick<Collection, 'read_policy' | 'write_policy' | 'owner_scope'>): string => {
  const read = policySentence('read', read_policy, owner_scope)
  const write = policySentence('write', write_policy, owner_scope)
  if (read_policy === 'owner' && write_policy === 'owner')
    return owner_scope === 'group'
      ? 'Only who wrote a row reads and changes it.'
      : 'Only its owner reads and changes a row.'
  return `${read}. ${write}.`
}
/** The same in one or two words, for a list. */
export const policyWord = (policy: string): string => {
  const [kind, about] = policy.split(':')
  if (kind === 'public' || kind === 'authenticated') return 'everyone signed in'
  if (kind === 'role') return `role ${about}`
  if (kind === 'member') return about ? `${about}s of the group` : 'members of the group'
  return 'owner'
}
